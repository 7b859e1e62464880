//! What all changes of a job have in common: their ports, and the reads that find out why a job cannot be changed.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::model::owner_priorities::OwnerPriorities;
use rowmill_core::ports::{Clock, JobStore, PortError, Queue};

use crate::error::ChangeError;

/// The use cases, each in the file of its name, and the ports that they work through.
pub struct Changer {
    pub jobs: Arc<dyn JobStore>,
    /// The jobs queue, which has `split-job` continue a resumed job.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    pub clock: Arc<dyn Clock>,
    /// Retention of a job after its end.
    pub retention: Duration,
    /// The longest deadline that a request may name, in seconds.
    pub deadline_max: u64,
    pub owner_priorities: OwnerPriorities,
    /// Time after which an invocation that has read the job has ended, whatever its function.
    pub silent: Duration,
}

/// Maximum number of tries of a write if the job moves on to another attempt.
pub(crate) const TRIES: usize = 3;

impl Changer {
    /// The owner's job.
    pub(crate) async fn owned(&self, owner: &Owner, job_guid: JobGuid) -> Result<Job, ChangeError> {
        self.jobs.owned(owner, job_guid, self.clock.now()).await.map_err(|error| match error {
            PortError::NotFound => ChangeError::Unknown(job_guid),
            error => error.into(),
        })
    }

    /// The owner's job, if it has neither ended nor is being stopped.
    pub(crate) async fn active(&self, owner: &Owner, job_guid: JobGuid) -> Result<Job, ChangeError> {
        not_ending(self.owned(owner, job_guid).await?)
    }
}

/// The job, if it has neither ended nor is being stopped. Each job that a change refuses needs an error of its own:
/// without one, its row seems to keep changing.
pub(crate) fn not_ending(job: Job) -> Result<Job, ChangeError> {
    match job.status() {
        status if job.is_ended() => Err(ChangeError::Ended(status)),
        status if job.is_stopped() => Err(ChangeError::Stopping(status)),
        _ => Ok(job),
    }
}
