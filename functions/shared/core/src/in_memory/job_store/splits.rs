use async_trait::async_trait;
use jiff::Timestamp;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use crate::model::ids::{JobGuid, RunId};
use crate::model::job::{Job, JobWarning};
use crate::ports::{Splits, WriteLost};
use crate::text::Position;

#[async_trait]
impl Splits for InMemoryJobStore {
    async fn count_tally(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        number: u32,
        next: Position,
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.held(job, attempt, holder)?;
        if job.split.tallies != number || job.stop.is_some() || job.split.done || job.is_paused() {
            return Err(WriteLost::Condition(Box::new(job.clone())));
        }
        job.split.tallies = number + 1;
        job.split.dispatched = number;
        job.split.cursor = next;
        job.moved_at = now;
        Ok(())
    }

    async fn warn(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        warnings: &[JobWarning],
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.held(job, attempt, holder)?;
        job.warnings = warnings.to_vec();
        job.moved_at = now;
        Ok(())
    }

    async fn pause_split(&self, job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<(), WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.held(job, attempt, holder)?;
        job.split.dispatched = job.split.tallies;
        job.lease = None;
        job.moved_at = now;
        Ok(())
    }

    async fn finish_split(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        at_end: bool,
        now: Timestamp,
    ) -> Result<Job, WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.held(job, attempt, holder)?;
        job.split.done = true;
        job.split.at_end = at_end;
        job.split.dispatched = job.split.tallies;
        job.lease = None;
        job.moved_at = now;
        Ok(job.clone())
    }
}
