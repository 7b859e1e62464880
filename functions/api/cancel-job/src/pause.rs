//! Pauses and resumes a job. While it is paused, running chunks end and no other one begins; the splitter dispatches no
//! further tally. A resume has `split-job` send the chunks again whose messages were dropped meanwhile.

use std::sync::Arc;

use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::job::states::{Phase, Status};
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::ports::{Clock, JobStore, PortError, Queue};
use rowmill_core::progress::update::update_job;

/// The use case and the ports it works through.
pub struct Pauser {
    pub jobs: Arc<dyn JobStore>,
    /// The jobs queue, which has `split-job` continue a resumed job.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    pub clock: Arc<dyn Clock>,
}

/// Why a job was neither paused nor resumed. The texts are the problem details that the client reads.
#[derive(Debug, thiserror::Error)]
pub enum PauseError {
    /// The caller has no such job.
    #[error("There is no job {0}, or it has expired.")]
    Unknown(JobGuid),
    #[error("The job has ended with status `{}`, so it can be neither paused nor resumed.", .0.as_str())]
    Ended(Status),
    #[error("The job is being stopped, so it can be neither paused nor resumed. Wait until it has ended.")]
    Stopping(Status),
    #[error("All items of the job are processed and it is about to complete, so it cannot be paused.")]
    Completing(Status),
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Maximum number of tries of a write if the job moves on to another attempt.
const TRIES: usize = 3;

impl Pauser {
    /// Pauses the owner's job. Pausing it again changes nothing. A job that the breaker has paused is paused by its owner
    /// from then on: it does not resume by itself.
    ///
    /// # Errors
    /// See [`PauseError`]; nothing is written then.
    pub async fn pause(&self, owner: &Owner, job_guid: JobGuid) -> Result<Job, PauseError> {
        let mut job = self.active(owner, job_guid).await?;
        for _ in 0..TRIES {
            if job.is_paused_by_owner() {
                return Ok(job);
            }
            // Only a courtesy: a job whose last chunks are committed after this look is paused and completes all the same.
            if job.split.done && self.jobs.totals(job_guid, job.attempt).await?.is_complete() {
                return Err(PauseError::Completing(job.status()));
            }
            let now = self.clock.now();
            match update_job(&*self.jobs, &job, |job| job.pause(now)).await?.done() {
                Ok(job) => return Ok(job),
                Err(now) => job = not_ending(*now)?,
            }
        }
        Err(PortError::unavailable("pausing the job", "its row keeps changing").into())
    }

    /// Resumes the owner's job, and sends the message that continues it. Resuming it again changes nothing and sends nothing:
    /// a second message could join the resend, and chunks would run twice.
    ///
    /// # Errors
    /// See [`PauseError`]; nothing is written then.
    pub async fn resume(&self, owner: &Owner, job_guid: JobGuid) -> Result<Job, PauseError> {
        let mut job = self.active(owner, job_guid).await?;
        for _ in 0..TRIES {
            if !job.is_paused() {
                break;
            }
            let now = self.clock.now();
            match update_job(&*self.jobs, &job, |job| job.resume(now)).await?.done() {
                Ok(resumed) => {
                    self.send_resend(&resumed).await;
                    return Ok(resumed);
                }
                Err(now) => job = not_ending(*now)?,
            }
        }
        Ok(job)
    }

    /// Sends the message that has the missing chunks sent again, unless the job was paused again since. A failure is only
    /// logged: the job is resumed, and the sweep sends the message.
    pub(crate) async fn send_resend(&self, job: &Job) {
        if job.resend_from.is_some()
            && let Err(error) = self.splits.send(&[SplitMessage::of(job)]).await
        {
            let error = &error as &dyn std::error::Error;
            tracing::error!(job.id = %job.job_guid, error, "job resumed, message not sent");
        }
    }

    async fn active(&self, owner: &Owner, job_guid: JobGuid) -> Result<Job, PauseError> {
        match self.jobs.owned(owner, job_guid, self.clock.now()).await {
            Err(PortError::NotFound) => Err(PauseError::Unknown(job_guid)),
            job => not_ending(job?),
        }
    }
}

/// The job, if it has neither ended nor is being stopped. Each job that `pause` or `resume` refuses needs an error of its own:
/// without one, its row seems to keep changing.
fn not_ending(job: Job) -> Result<Job, PauseError> {
    match job.phase {
        Phase::Runnable | Phase::Paused(_) => Ok(job),
        Phase::Stopping(_) => Err(PauseError::Stopping(job.status())),
        Phase::Ended(_) => Err(PauseError::Ended(job.status())),
    }
}
