use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;

use super::lock;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::live::{Connection, ConnectionId, Ticket, TicketDigest, Topic, Watcher};
use rowmill_core::ports::{ConnectionSender, Connections, PortError, SendError, Subscribed, Subscriptions, Tickets};

/// The connections table in memory.
#[derive(Debug, Default)]
pub struct InMemoryLive(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    tickets: BTreeMap<TicketDigest, Ticket>,
    connections: BTreeMap<ConnectionId, (Connection, BTreeSet<Topic>)>,
}

#[async_trait]
impl Tickets for InMemoryLive {
    async fn issue(&self, digest: &TicketDigest, ticket: &Ticket) -> Result<(), PortError> {
        lock(&self.0).tickets.insert(digest.clone(), ticket.clone());
        Ok(())
    }

    async fn redeem(&self, digest: &TicketDigest, now: Timestamp) -> Result<Option<Ticket>, PortError> {
        let issued = lock(&self.0).tickets.remove(digest);
        Ok(issued.filter(|ticket| ticket.until > now))
    }
}

#[async_trait]
impl Connections for InMemoryLive {
    async fn open(&self, connection: &Connection) -> Result<(), PortError> {
        let mut rows = lock(&self.0);
        rows.connections.entry(connection.id.clone()).or_insert_with(|| (connection.clone(), BTreeSet::new()));
        Ok(())
    }

    async fn connection(&self, id: &ConnectionId, now: Timestamp) -> Result<Connection, PortError> {
        let rows = lock(&self.0);
        let (connection, _) = rows.connections.get(id).ok_or(PortError::NotFound)?;
        if connection.until > now { Ok(connection.clone()) } else { Err(PortError::NotFound) }
    }

    async fn close(&self, id: &ConnectionId) -> Result<(), PortError> {
        lock(&self.0).connections.remove(id);
        Ok(())
    }

    async fn count(&self, owner: &Owner, most: usize, now: Timestamp) -> Result<usize, PortError> {
        let rows = lock(&self.0);
        let open = rows.connections.values().filter(|(there, _)| there.owner == *owner && there.until > now);
        Ok(open.take(most).count())
    }
}

#[async_trait]
impl Subscriptions for InMemoryLive {
    async fn subscribe(&self, connection: &Connection, topic: Topic, most: usize) -> Result<Subscribed, PortError> {
        let mut rows = lock(&self.0);
        let (_, topics) = rows.connections.get_mut(&connection.id).ok_or(PortError::NotFound)?;
        if topics.len() >= most && !topics.contains(&topic) {
            return Ok(Subscribed::Full);
        }
        topics.insert(topic);
        Ok(Subscribed::Yes)
    }

    async fn unsubscribe(&self, connection: &Connection, topic: Topic) -> Result<(), PortError> {
        if let Some((_, topics)) = lock(&self.0).connections.get_mut(&connection.id) {
            topics.remove(&topic);
        }
        Ok(())
    }

    async fn watchers(&self, owner: &Owner) -> Result<Vec<Watcher>, PortError> {
        let rows = lock(&self.0);
        let of_owner = rows.connections.values().filter(|(there, _)| there.owner == *owner);
        let watching = of_owner.filter(|(_, topics)| !topics.is_empty());
        let watcher = |(there, topics): &(Connection, BTreeSet<Topic>)| Watcher {
            connection: there.id.clone(),
            until: there.until,
            topics: topics.clone(),
        };
        Ok(watching.map(watcher).collect())
    }
}

/// A sender in memory: keeps what it sent, and fails for the connections that a test names.
#[derive(Debug, Default)]
pub struct InMemorySender(Mutex<Sent>);

#[derive(Debug, Default)]
struct Sent {
    texts: Vec<(ConnectionId, String)>,
    gone: BTreeSet<ConnectionId>,
    silent: BTreeSet<ConnectionId>,
}

impl InMemorySender {
    /// Takes all that was sent since the last call, in its order.
    pub fn take(&self) -> Vec<(ConnectionId, String)> {
        std::mem::take(&mut lock(&self.0).texts)
    }

    /// Closes this connection.
    pub fn lose(&self, connection: &ConnectionId) {
        lock(&self.0).gone.insert(connection.clone());
    }

    /// Has every send to this connection fail.
    pub fn silence(&self, connection: &ConnectionId) {
        lock(&self.0).silent.insert(connection.clone());
    }

    pub fn is_closed(&self, connection: &ConnectionId) -> bool {
        lock(&self.0).gone.contains(connection)
    }
}

#[async_trait]
impl ConnectionSender for InMemorySender {
    async fn send(&self, to: &ConnectionId, text: &str) -> Result<(), SendError> {
        let mut sent = lock(&self.0);
        if sent.gone.contains(to) {
            return Err(SendError::Gone);
        }
        if sent.silent.contains(to) {
            return Err(PortError::unavailable("sending", "the connection is silent").into());
        }
        sent.texts.push((to.clone(), text.to_owned()));
        Ok(())
    }

    async fn hang_up(&self, connection: &ConnectionId) -> Result<(), PortError> {
        lock(&self.0).gone.insert(connection.clone());
        Ok(())
    }
}
