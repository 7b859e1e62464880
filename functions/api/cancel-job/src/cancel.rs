//! Cancels a job. A job that no function has taken up ends at once. Any other is stopped: running chunks end, queued
//! chunks are skipped, and the last chunk ends the job.

use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, Stop, StopCode};
use rowmill_core::ports::{Completion, WriteLost};
use rowmill_core::progress::update::update_job;

use crate::change::Changer;
use crate::error::ChangeError;

impl Changer {
    /// Cancels the owner's job, for the owner or for an operator. Cancelling it again changes nothing.
    pub async fn cancel(&self, owner: &Owner, job_guid: JobGuid, by_operator: bool) -> Result<Job, ChangeError> {
        let now = self.clock.now();
        let mut job = self.owned(owner, job_guid).await?;
        let by = if by_operator { "cancelled by an operator" } else { "cancelled by its owner" };
        let stop = Stop::because(StopCode::Cancelled, by, now);
        loop {
            if is_cancelled(&job) {
                return Ok(job);
            }
            if let Some(end) = Completion::of_untaken(&job, &stop, self.retention) {
                match self.jobs.complete(&end).await {
                    Ok(()) => return Ok(end.job()),
                    // A function has taken it up, or its owner has changed it otherwise, or it has ended.
                    Err(WriteLost::Condition(now)) => job = *now,
                    Err(WriteLost::Port(error)) => return Err(error.into()),
                }
                continue;
            }
            match update_job(&*self.jobs, &job, |job| job.stop(&stop)).await?.done() {
                Ok(job) => return Ok(job),
                Err(now) if now.is_ended() && !is_cancelled(&now) => {
                    return Err(ChangeError::Ended(now.status()));
                }
                // Another attempt has started since the read.
                Err(now) if now.attempt != job.attempt => job = *now,
                // Another stop was set first.
                Err(now) => return Ok(*now),
            }
        }
    }
}

const fn is_cancelled(job: &Job) -> bool {
    matches!(job.status(), Status::Cancelling | Status::Cancelled)
}
