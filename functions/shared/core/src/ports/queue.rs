use std::time::Duration;

use async_trait::async_trait;

use crate::model::messages::Grouped;
use crate::ports::PortError;

/// A queue that delivers each message at least once, in no particular order.
#[async_trait]
pub trait Queue<M: Grouped + Send + Sync>: Send + Sync {
    /// Sends these messages.
    async fn send(&self, messages: &[M]) -> Result<(), PortError> {
        self.send_later(messages, Duration::ZERO).await
    }

    /// Sends these messages, to be received after this time at the earliest, or after the longest that the queue can
    /// hold messages back. Retries entries that the queue refuses temporarily.
    ///
    /// # Errors
    /// `Unavailable`: some of the messages may have been sent. Send all of them again.
    async fn send_later(&self, messages: &[M], delay: Duration) -> Result<(), PortError>;

    /// The approximate number of messages that wait to be received, without those in flight.
    async fn backlog(&self) -> Result<u64, PortError>;
}

/// The messages of a queue that are in flight: received and not yet acknowledged.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Makes the message of this receipt visible again after `by`, unless it is acknowledged before.
    async fn postpone(&self, receipt: &str, by: Duration) -> Result<(), PortError>;
}
