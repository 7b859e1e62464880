//! Ending the split of a job: no further tally will be counted.

use std::sync::Arc;

use crate::model::ids::RunId;
use crate::model::job::Job;
use crate::model::messages::CompletionMessage;
use crate::ports::{Clock, JobStore, PortError, Queue, WriteLost};

/// Ends splits, and announces attempts that are already complete.
#[derive(Clone)]
pub struct SplitEnd {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// The completions queue.
    pub completions: Arc<dyn Queue<CompletionMessage>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl SplitEnd {
    /// Ends the split of a job under the lease of `holder`, because all items are dispatched (`at_end`) or the job was
    /// stopped. Returns whether the split has ended, by this run or by another.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn finish(&self, job: &Job, holder: RunId, at_end: bool) -> Result<bool, PortError> {
        match self.jobs.finish_split(job.job_guid, job.attempt, holder, at_end, self.clock.now()).await {
            Ok(job) => self.announce(&job).await?,
            Err(WriteLost::Condition(now)) if now.split.done && !now.is_past(job.attempt) => {
                self.announce(&now).await?;
            }
            Err(WriteLost::Condition(_)) => return Ok(false),
            Err(WriteLost::Port(error)) => return Err(error),
        }
        Ok(true)
    }

    /// Writes the number of tallies into the totals. If all of them are already closed, this announces the attempt,
    /// because no other run will.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn announce(&self, job: &Job) -> Result<(), PortError> {
        let totals = self.jobs.set_final_tallies(job.job_guid, job.attempt, job.split.tallies).await?;
        if totals.is_complete() {
            self.completions.send(&[CompletionMessage::of(job)]).await?;
        }
        Ok(())
    }
}
