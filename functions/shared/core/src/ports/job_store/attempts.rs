use async_trait::async_trait;
use jiff::Timestamp;

use super::admissions::{Ceilings, Full};
use crate::model::job::{Job, Redrive};
use crate::ports::PortError;

/// Starting the next attempt.
#[async_trait]
pub trait Attempts: Send + Sync {
    /// Starts the next attempt of an ended job over its failed items, all or nothing: takes its slots and resets the
    /// split. Condition: nobody has written the row since it was seen. Idempotent: the same redrive again changes
    /// nothing and succeeds, since the first reply was lost.
    ///
    /// # Errors
    /// [`RedriveError`]; nothing is written then.
    async fn redrive(&self, redrive: &NewAttempt) -> Result<Job, RedriveError>;
}

/// The next attempt of a job that has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct NewAttempt {
    /// The job as seen. Its row must be unchanged.
    pub seen: Job,
    /// The items that the attempt repeats.
    pub redrive: Redrive,
    /// The ceilings of the slots that it takes.
    pub ceilings: Ceilings,
    pub at: Timestamp,
    /// When it is stopped if it has not ended.
    pub deadline_at: Timestamp,
    /// When the sweep first looks at it.
    pub wake_at: Timestamp,
}

impl NewAttempt {
    /// The job after the redrive; none if the job as seen has not ended.
    pub fn job(&self) -> Option<Job> {
        let next = self.seen.redrive(self.redrive.clone(), self.at, self.deadline_at, self.wake_at)?;
        Some(Job { revision: self.seen.revision + 1, ..next })
    }

    /// True if this redrive has already been applied to the job: its reply was lost.
    pub fn was_applied(&self, job: &Job) -> bool {
        job.attempt == self.seen.attempt + 1
            && job.redrive.as_ref().is_some_and(|redrive| redrive.by == self.redrive.by)
    }
}

/// Why no attempt was started. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum RedriveError {
    /// A limit of active jobs is reached: try again when a job has ended.
    #[error("a ceiling of active jobs is reached: {:?}", .0.admission)]
    Full(Full),
    /// The job has changed since it was seen. Holds the current job.
    #[error("the job has changed since it was read")]
    Moved(Box<Job>),
    #[error(transparent)]
    Port(#[from] PortError),
}
