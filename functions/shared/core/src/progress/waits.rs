//! Telling jobs of the end of what they wait for.

use std::sync::Arc;

use uuid::Uuid;

use crate::model::messages::SplitMessage;
use crate::ports::{JobStore, PortError, Queue};
use crate::wiring::{Missing, Ports};

/// Starts the jobs that wait for an upload or a job.
pub struct Waker {
    pub jobs: Arc<dyn JobStore>,
    /// The jobs queue.
    pub splits: Arc<dyn Queue<SplitMessage>>,
}

impl Waker {
    pub fn of(ports: &Ports) -> Result<Self, Missing> {
        Ok(Self { jobs: ports.jobs.get()?, splits: ports.splits.get()? })
    }

    /// Sends the messages of the jobs that wait for this upload or job, which has come to its end. The sweep sends a lost
    /// one; one too many has no effect.
    pub async fn wake(&self, awaited: Uuid) -> Result<(), PortError> {
        let mut messages = Vec::new();
        for job in self.jobs.awaiting(awaited).await? {
            match self.jobs.job(job).await {
                Ok(job) if job.is_awaiting() => messages.push(SplitMessage::of(&job)),
                // An unreadable row keeps nobody else waiting.
                Ok(_) | Err(PortError::NotFound | PortError::Invalid { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if messages.is_empty() { Ok(()) } else { self.splits.send(&messages).await }
    }
}
