use std::time::Duration;

use async_trait::async_trait;

use crate::model::messages::Grouped;
use crate::ports::PortError;

/// A queue that delivers each message at least once, in no particular order.
#[async_trait]
pub trait Queue<M: Grouped + Send + Sync>: Send + Sync {
    /// Sends these messages. Entries the queue refused for the moment are tried again.
    ///
    /// # Errors
    /// `Unavailable`: any number of them may have been sent; sending all of them again is right.
    async fn send(&self, messages: &[M]) -> Result<(), PortError>;

    /// About how many messages wait to be received; those being worked on are not among them.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn backlog(&self) -> Result<u64, PortError>;
}

/// The messages of a queue that are being worked on.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Has the message of this receipt delivered again in so long, unless it is acknowledged before.
    ///
    /// # Errors
    /// `Unavailable`: it is delivered again when the queue sees fit.
    async fn postpone(&self, receipt: &str, by: Duration) -> Result<(), PortError>;
}
