use std::sync::Mutex;

use async_trait::async_trait;

use super::lock;
use rowmill_core::model::job_event::JobEvent;
use rowmill_core::ports::{Events, PortError};

/// A bus that keeps events until they are taken.
#[derive(Debug, Default)]
pub struct InMemoryEvents(Mutex<Vec<JobEvent>>);

impl InMemoryEvents {
    /// Takes all events, in the order in which they were published.
    pub fn take(&self) -> Vec<JobEvent> {
        std::mem::take(&mut *lock(&self.0))
    }
}

#[async_trait]
impl Events for InMemoryEvents {
    async fn publish(&self, events: &[JobEvent]) -> Vec<Result<(), PortError>> {
        lock(&self.0).extend_from_slice(events);
        events.iter().map(|_| Ok(())).collect()
    }
}
