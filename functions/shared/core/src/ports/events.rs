use async_trait::async_trait;

use crate::model::job_event::JobEvent;
use crate::ports::PortError;

/// The event bus that tells other systems about jobs.
#[async_trait]
pub trait Events: Send + Sync {
    /// Publishes these events, each at least once. The results are in the order of the events.
    ///
    /// # Errors
    /// Per event: `Unavailable` if it may or may not be published; publish it again. `Invalid` if the bus rejects it.
    async fn publish(&self, events: &[JobEvent]) -> Vec<Result<(), PortError>>;
}
