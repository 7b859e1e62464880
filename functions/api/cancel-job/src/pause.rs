//! Pauses and resumes a job. While it is paused, running chunks end and no other one begins; the splitter dispatches no
//! further tally. A resume has `split-job` send the chunks again whose messages were dropped meanwhile.

use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::ports::PortError;
use rowmill_core::progress::update::update_job;

use crate::change::{Changer, TRIES, not_ending};
use crate::error::ChangeError;

impl Changer {
    /// Pauses the owner's job. Pausing it again changes nothing. A job that the breaker has paused is paused by its
    /// owner from then on: it does not resume by itself.
    pub async fn pause(&self, owner: &Owner, job_guid: JobGuid) -> Result<Job, ChangeError> {
        let mut job = self.active(owner, job_guid).await?;
        for _ in 0..TRIES {
            if job.is_paused_by_owner() {
                return Ok(job);
            }
            // Only a courtesy: a job whose last chunks are committed later is paused and completes all the same.
            if job.split.done && self.jobs.totals(job_guid, job.attempt).await?.is_complete() {
                return Err(ChangeError::Completing(job.status()));
            }
            // Each try of the write reads the clock: the grace counts from the time that the pause names.
            match update_job(&*self.jobs, &job, |job| job.pause(self.clock.now())).await?.done() {
                Ok(job) => return Ok(job),
                Err(now) => job = not_ending(*now)?,
            }
        }
        Err(PortError::unavailable("pausing the job", "its row keeps changing").into())
    }

    /// Resumes the owner's job, and sends the message that continues it. Resuming it again changes nothing and sends
    /// nothing: a second message could join the resend, and chunks would run twice.
    pub async fn resume(&self, owner: &Owner, job_guid: JobGuid) -> Result<Job, ChangeError> {
        let mut job = self.active(owner, job_guid).await?;
        for _ in 0..TRIES {
            if !job.is_paused() {
                break;
            }
            match update_job(&*self.jobs, &job, |job| job.resume(self.clock.now())).await?.done() {
                Ok(resumed) => {
                    self.send_split(&resumed).await;
                    return Ok(resumed);
                }
                Err(now) => job = not_ending(*now)?,
            }
        }
        Ok(job)
    }

    /// Sends the message that has the missing chunks sent again, unless the job was paused again since. A failure is
    /// only logged: the job is resumed, and the sweep sends the message.
    pub(crate) async fn send_split(&self, job: &Job) {
        if job.resend_from.is_some()
            && let Err(error) = self.splits.send(&[SplitMessage::of(job)]).await
        {
            let error = &error as &dyn std::error::Error;
            tracing::error!(job.id = %job.job_guid, error, "job resumed, message not sent");
        }
    }
}
