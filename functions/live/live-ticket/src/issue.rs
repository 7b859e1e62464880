//! Issues a ticket: stores its digest with its owner, and gives the ticket itself to the caller only.

use std::sync::Arc;

use jiff::Timestamp;
use rowmill_api::live::LiveTicketView;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::live::{CONNECTION_LIFETIME, TICKET_LIFETIME, Ticket, TicketDigest};
use rowmill_core::ports::{Clock, Connections, Entropy, PortError, Tickets, expiry};

/// The use case and the ports it works through.
pub struct TicketOffice {
    pub tickets: Arc<dyn Tickets>,
    pub connections: Arc<dyn Connections>,
    pub clock: Arc<dyn Clock>,
    /// The randomness of the tickets.
    pub entropy: Arc<dyn Entropy>,
    /// Address for opening connections.
    pub url: String,
    /// Maximum number of connections.
    pub per_owner: usize,
}

/// Why there is no ticket. The texts are the problem details that the client reads.
#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    #[error("You have {0} live connections or more, which is the limit. Close some of them, then try again.")]
    TooManyConnections(usize),
    #[error(transparent)]
    Port(#[from] PortError),
}

impl TicketOffice {
    /// Issues a ticket to this owner, whose token ends at this time. Neither the ticket nor its connection outlives it.
    ///
    /// The limit is checked here, because here the caller can be told why, and again when the connection is opened,
    /// because many tickets may have been given out for the last places.
    pub async fn issue(&self, owner: &Owner, token_until: Option<Timestamp>) -> Result<LiveTicketView, TicketError> {
        let now = self.clock.now();
        if self.connections.count(owner, self.per_owner, now).await? >= self.per_owner {
            return Err(TicketError::TooManyConnections(self.per_owner));
        }
        // Two random UUIDs: 244 bits from the operating system's generator.
        let halves = [self.entropy.file_guid(), self.entropy.file_guid()];
        let ticket = halves.map(|half| half.0.simple().to_string()).concat();
        let [until, connection_until] = [TICKET_LIFETIME, CONNECTION_LIFETIME]
            .map(|lifetime| expiry(now, lifetime).min(token_until.unwrap_or(Timestamp::MAX)));
        let issued = Ticket { owner: owner.clone(), until, connection_until };
        self.tickets.issue(&TicketDigest::of(&ticket), &issued).await?;
        Ok(LiveTicketView { ticket, url: self.url.clone(), expires_at: until })
    }
}
