use async_trait::async_trait;
use jiff::Timestamp;

use super::write_lost::WriteLost;
use crate::model::breaker::BreakerPause;
use crate::model::ids::JobGuid;
use crate::model::job::Job;
use crate::ports::PortError;

/// Pausing and resuming an attempt.
#[async_trait]
pub trait Pauses: Send + Sync {
    /// Pauses an attempt. Condition: the job is waiting or running in this attempt and is not stopped. Idempotent: a job
    /// that its owner has paused in this attempt stays as it is; one that the breaker has paused is its owner's from then on.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the current job.
    async fn pause(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost>;

    /// Pauses an attempt because the target of its job type is down; the sweep looks at it at `look_at`. Condition: as for
    /// [`pause`](Self::pause). A job that is paused in this attempt stays as it is, whoever has paused it.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the current job.
    async fn pause_by_breaker(
        &self,
        job: JobGuid,
        attempt: u32,
        pause: &BreakerPause,
        look_at: Timestamp,
    ) -> Result<Job, WriteLost>;

    /// Resumes an attempt that the breaker has paused, as [`resume`](Self::resume) does. Condition: the breaker has paused
    /// it, and it was neither resumed nor paused by its owner since `pauses` was read.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the current job. If the reply was lost, that is the job as it was resumed.
    async fn resume_by_breaker(
        &self,
        job: JobGuid,
        attempt: u32,
        pauses: u32,
        now: Timestamp,
    ) -> Result<Job, WriteLost>;

    /// Resumes an attempt: its status is as before the pause, it is due for the sweep at once, and all chunks of its counted
    /// tallies may have to be sent again, from tally 0 on. Condition: the job is paused in this attempt.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the current job. If the reply was lost, that is the job as it was resumed.
    async fn resume(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost>;

    /// Notes that the missing chunks of a resumed job are sent again as far as in `resent`. Condition: the job has not been
    /// paused since that resume, and nobody has noted more. Returns whether it is noted: now, or earlier with the reply
    /// lost.
    ///
    /// # Errors
    /// `NotFound` if the job is gone; `Unavailable`.
    async fn note_resent(&self, job: JobGuid, resent: Resent, now: Timestamp) -> Result<bool, PortError>;
}

/// How far the missing chunks of a resumed job are sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resent {
    /// The resume, by the job's number of pauses and resumes.
    pub pauses: u32,
    /// The tally that the job row names as the first one.
    pub from: u32,
    /// The first tally that may still be missing chunks; `None` if none is.
    pub next: Option<u32>,
}

impl Resent {
    /// Whether this very note is in the row.
    pub fn was_noted(&self, job: &Job) -> bool {
        (job.pauses, job.resend_from) == (self.pauses, self.next)
    }
}
