//! Opens a connection for the owner of a ticket, and closes connections.

use std::sync::Arc;

use rowmill_core::model::live::{Connection, ConnectionId, TicketDigest};
use rowmill_core::ports::{Clock, Connections, PortError, Tickets};

/// The use case and the ports it works through.
pub struct Doorkeeper {
    pub tickets: Arc<dyn Tickets>,
    pub connections: Arc<dyn Connections>,
    pub clock: Arc<dyn Clock>,
    /// Maximum number of connections.
    pub per_owner: usize,
}

/// Result of a request to open a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opened {
    Yes,
    /// The ticket is unknown, used or expired.
    NoTicket,
    TooMany,
}

impl Doorkeeper {
    /// Opens a connection if the ticket is good and its owner has room for it.
    ///
    /// The room was checked when the ticket was issued, and many tickets may have been issued since. So the connections
    /// are counted again, each behind its own row: of two that are opened at the same moment one at least counts the
    /// other. The limit is never exceeded, and all that meet at it may be refused together.
    ///
    /// The ticket is used up first. If this process dies before the connection is stored, API Gateway refuses the
    /// connection, and the client asks for another ticket. If it dies after that, a row is left that expires by itself.
    ///
    /// # Errors
    /// `Unavailable`: the connection must be refused.
    pub async fn connect(&self, id: ConnectionId, ticket: &str) -> Result<Opened, PortError> {
        let now = self.clock.now();
        let Some(ticket) = self.tickets.redeem(&TicketDigest::of(ticket), now).await? else {
            return Ok(Opened::NoTicket);
        };
        let connection = Connection { id, owner: ticket.owner, until: ticket.connection_until };
        self.connections.open(&connection).await?;
        let counted = self.connections.count(&connection.owner, self.per_owner.saturating_add(1), now).await;
        if matches!(counted, Ok(count) if count <= self.per_owner) {
            return Ok(Opened::Yes);
        }
        self.connections.close(&connection.id).await?;
        counted.map(|_| Opened::TooMany)
    }

    /// Removes a closed connection and its subscriptions. API Gateway promises no such call: what is left is removed
    /// when a message cannot be sent to it, or expires.
    pub async fn disconnect(&self, id: &ConnectionId) -> Result<(), PortError> {
        self.connections.close(id).await
    }
}
