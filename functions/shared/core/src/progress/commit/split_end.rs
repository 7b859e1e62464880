//! Ending the split of a job: no further tally will be counted.

use std::sync::Arc;

use crate::model::cost::Usage;
use crate::model::ids::RunId;
use crate::model::job::Job;
use crate::model::messages::CompletionMessage;
use crate::ports::{Clock, JobStore, PortError, Queue};
use crate::progress::update::update_job_ahead;

/// Ends splits, and announces attempts that are already complete.
#[derive(Clone)]
pub struct SplitEnd {
    pub jobs: Arc<dyn JobStore>,
    pub completions: Arc<dyn Queue<CompletionMessage>>,
    pub clock: Arc<dyn Clock>,
}

impl SplitEnd {
    /// Ends the split of a job under the lease of `holder`, because all items are dispatched (`at_end`) or the job was
    /// stopped. Returns whether the split has ended, by this run or by another.
    pub async fn finish(&self, job: &Job, holder: RunId, at_end: bool) -> Result<bool, PortError> {
        let now = self.clock.now();
        // The number of tallies is written to the totals next.
        let ahead = Usage::of_row_writes(1);
        let finish = |job: &Job| job.finish_split(holder, at_end, now);
        match update_job_ahead(&*self.jobs, job, ahead, finish).await?.done() {
            Ok(job) => self.announce(&job).await?,
            Err(now) if now.split.done && !now.is_past(job.attempt) => self.announce(&now).await?,
            Err(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Writes the number of tallies into the totals. If all of them are already closed, this announces the attempt,
    /// because no other run will.
    pub async fn announce(&self, job: &Job) -> Result<(), PortError> {
        let totals = self.jobs.set_final_tallies(job.job_guid, job.attempt, job.split.tallies).await?;
        if totals.is_complete() {
            self.completions.send(&[CompletionMessage::of(job)]).await?;
        }
        Ok(())
    }
}
