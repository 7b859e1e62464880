use async_trait::async_trait;
use jiff::Timestamp;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::job::Job;
use rowmill_core::ports::{Due, ERASE_SHARD, PortError, WAKE_SHARDS, WakeUps};

#[async_trait]
impl WakeUps for InMemoryJobStore {
    async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<Due>, PortError> {
        let tables = lock(&self.0);
        let shard_of = |job: &Job| match job.is_to_be_erased() {
            true => ERASE_SHARD.into(),
            // Any even spread will do.
            false => job.job_guid.0.as_u128() % u128::from(WAKE_SHARDS),
        };
        let jobs = tables.jobs.values().filter(|job| shard_of(job) == u128::from(shard));
        let mut due: Vec<Due> = jobs
            .filter_map(|job| Some(Due { job: job.job_guid, at: job.wake_at? }))
            .filter(|due| due.at <= now)
            .collect();
        due.sort_by_key(|due| due.at);
        due.truncate(limit);
        Ok(due)
    }

    async fn put_off(&self, due: Due, next: Timestamp) -> Result<(), PortError> {
        if let Some(job) = lock(&self.0).jobs.get_mut(&due.job).filter(|job| job.wake_at == Some(due.at)) {
            job.wake_at = Some(next);
            job.revision += 1;
        }
        Ok(())
    }
}
