use async_trait::async_trait;
use jiff::Timestamp;

use super::admissions::{Ceilings, Full};
use crate::model::ids::JobGuid;
use crate::model::job::states::Transition;
use crate::model::job::{Job, Redrive, SplitState, Stop};
use crate::ports::PortError;
use crate::text::Position;

/// Stopping an attempt and starting the next one.
#[async_trait]
pub trait Attempts: Send + Sync {
    /// Stops an attempt that has not ended and is not stopped, and makes the job due for the sweep at once. A stop ends a
    /// pause. A stop for lack of capacity is only set if no chunk of the attempt has begun. Idempotent: the same stop again
    /// answers [`Stopped::Now`], since the first reply was lost.
    ///
    /// # Errors
    /// `NotFound`.
    async fn stop(&self, job: JobGuid, attempt: u32, stop: &Stop) -> Result<Stopped, PortError>;

    /// Notes that a run takes up a chunk of an attempt, if it is the first one. Condition: the job is running in this attempt
    /// and is not stopped. Returns the current job, noted or not.
    ///
    /// # Errors
    /// `NotFound`; `Unavailable`.
    async fn note_first_chunk(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, PortError>;

    /// Starts the next attempt of an ended job over its failed items, all or nothing: takes its slots, resets the split and
    /// keeps the counts. Condition: status and attempt are as seen. Idempotent: the same redrive again changes nothing and
    /// succeeds, since the first reply was lost.
    ///
    /// # Errors
    /// [`RedriveError`]; nothing is written then.
    async fn redrive(&self, redrive: &NewAttempt) -> Result<Job, RedriveError>;
}

/// The answer to stopping a job, with the current job.
#[derive(Clone, PartialEq, Debug)]
pub enum Stopped {
    /// It is stopped for this reason.
    Now(Job),
    /// It was stopped before, has ended, or is at another attempt.
    Not(Job),
}

impl Stopped {
    /// The job, if it is still at this attempt and the attempt has not ended.
    pub fn of_attempt(self, attempt: u32) -> Option<Job> {
        let (Self::Now(job) | Self::Not(job)) = self;
        (!job.is_past(attempt)).then_some(job)
    }
}

/// The next attempt of a job that has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct NewAttempt {
    /// The job as seen. Its status and attempt must be unchanged.
    pub seen: Job,
    /// The items that the attempt repeats.
    pub redrive: Redrive,
    /// The ceilings of the slots that it takes.
    pub ceilings: Ceilings,
    /// When it starts.
    pub at: Timestamp,
    /// When it is stopped if it has not ended.
    pub deadline_at: Timestamp,
    /// When the sweep first looks at it.
    pub wake_at: Timestamp,
}

impl NewAttempt {
    /// The job after the redrive.
    pub fn job(&self) -> Job {
        Job {
            status: Transition::Redrive.apply(self.seen.status).unwrap_or(self.seen.status),
            outcome: None,
            attempt: self.seen.attempt + 1,
            split: SplitState {
                tallies: 0,
                dispatched: 0,
                cursor: Position { offset: 0, row: 1 },
                done: false,
                at_end: false,
            },
            lease: None,
            stop: None,
            redrive: Some(self.redrive.clone()),
            composing: None,
            recoveries: 0,
            first_chunk_at: None,
            paused_from: None,
            breaker_pause: None,
            resend_from: None,
            moved_at: self.at,
            deadline_at: self.deadline_at,
            finished_at: None,
            wake_at: Some(self.wake_at),
            expires_at: None,
            ..self.seen.clone()
        }
    }

    /// Whether this redrive has already been applied to the job: its reply was lost.
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
    /// The store failed.
    #[error(transparent)]
    Port(#[from] PortError),
}
