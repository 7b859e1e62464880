//! Opens a connection for the owner of a ticket, and closes connections.

use std::sync::Arc;

use rowmill_core::model::live::{CONNECTION_LIFETIME, Connection, ConnectionId, TicketDigest};
use rowmill_core::ports::{Clock, Connections, PortError, Tickets, expiry};

/// The use case and the ports it works through.
pub struct Doorkeeper {
    /// The tickets.
    pub tickets: Arc<dyn Tickets>,
    /// The connections.
    pub connections: Arc<dyn Connections>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl Doorkeeper {
    /// Opens a connection if the ticket is good. Returns whether it was.
    ///
    /// The ticket is used up first. If this process dies before the connection is stored, API Gateway refuses the
    /// connection, and the client asks for another ticket. If it dies after that, a row is left that expires by itself.
    ///
    /// # Errors
    /// `Unavailable`: the connection must be refused.
    pub async fn connect(&self, id: ConnectionId, ticket: &str) -> Result<bool, PortError> {
        let now = self.clock.now();
        let Some(owner) = self.tickets.redeem(&TicketDigest::of(ticket), now).await? else { return Ok(false) };
        self.connections.open(&Connection { id, owner, until: expiry(now, CONNECTION_LIFETIME) }).await?;
        Ok(true)
    }

    /// Removes a closed connection and its subscriptions. API Gateway promises no such call: what is left is removed when a
    /// message cannot be sent to it, or expires.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn disconnect(&self, id: &ConnectionId) -> Result<(), PortError> {
        self.connections.close(id).await
    }
}
