use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::Owner;
use crate::model::live::{Connection, ConnectionId, Ticket, TicketDigest, Topic, Watcher};
use crate::ports::PortError;

/// The tickets that open live connections.
#[async_trait]
pub trait Tickets: Send + Sync {
    /// Stores a ticket.
    async fn issue(&self, digest: &TicketDigest, ticket: &Ticket) -> Result<(), PortError>;

    /// Uses a ticket up. Returns it; none if there is no such ticket, if it has expired by `now`, or if it was used. Of
    /// several calls at once with one ticket at most one gets it.
    ///
    /// # Errors
    /// `Unavailable`: the ticket may be used up.
    async fn redeem(&self, digest: &TicketDigest, now: Timestamp) -> Result<Option<Ticket>, PortError>;
}

/// The open live connections.
#[async_trait]
pub trait Connections: Send + Sync {
    /// Stores a connection, without subscriptions. Idempotent.
    async fn open(&self, connection: &Connection) -> Result<(), PortError>;

    /// Reads a connection.
    ///
    /// # Errors
    /// `NotFound` if it was not opened, is closed, or has ended by `now`.
    async fn connection(&self, id: &ConnectionId, now: Timestamp) -> Result<Connection, PortError>;

    /// Removes a connection and its subscriptions. Idempotent.
    ///
    /// # Errors
    /// `Unavailable`: a part may be left. It expires by itself.
    async fn close(&self, id: &ConnectionId) -> Result<(), PortError>;

    /// Number of the owner's connections, counted up to `most`. It includes every connection whose [`open`](Self::open)
    /// has returned before the call.
    async fn count(&self, owner: &Owner, most: usize, now: Timestamp) -> Result<usize, PortError>;
}

/// The jobs that the live connections watch.
#[async_trait]
pub trait Subscriptions: Send + Sync {
    /// Adds a subscription, unless the connection has `most` others. Idempotent. One write.
    ///
    /// Any later call of [`watchers`](Self::watchers) includes it.
    ///
    /// # Errors
    /// `NotFound` if the connection is closed.
    async fn subscribe(&self, connection: &Connection, topic: Topic, most: usize) -> Result<Subscribed, PortError>;

    /// Removes a subscription, if it is there. Idempotent.
    async fn unsubscribe(&self, connection: &Connection, topic: Topic) -> Result<(), PortError>;

    /// The owner's connections that have subscriptions, also those that have ended and were not closed. Mostly one
    /// request.
    async fn watchers(&self, owner: &Owner) -> Result<Vec<Watcher>, PortError>;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subscribed {
    Yes,
    /// The connection has too many.
    Full,
}

#[async_trait]
pub trait ConnectionSender: Send + Sync {
    /// Sends a text. One request, without a retry.
    async fn send(&self, to: &ConnectionId, text: &str) -> Result<(), SendError>;

    /// Closes the connection, so that its client notices. Idempotent.
    async fn hang_up(&self, connection: &ConnectionId) -> Result<(), PortError>;
}

#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("the connection is closed")]
    Gone,
    /// It may or may not have arrived.
    #[error(transparent)]
    Port(#[from] PortError),
}
