use async_trait::async_trait;

use crate::model::job_event::JobEvent;
use crate::ports::PortError;

/// The bus on which other systems hear of jobs.
#[async_trait]
pub trait Events: Send + Sync {
    /// Publishes these events, each at least once. The results are in the order of the events.
    ///
    /// # Errors
    /// Per event: `Unavailable`, with nothing known about whether it is published; publishing it again is right. `Invalid`
    /// where the bus does not take it and never will.
    async fn publish(&self, events: &[JobEvent]) -> Vec<Result<(), PortError>>;
}
