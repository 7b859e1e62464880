use async_trait::async_trait;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::{Erasures, PortResult};

#[async_trait]
impl Erasures for InMemoryJobStore {
    /// Two calls erase a job: the first one leaves its row.
    async fn erase_rows(&self, job: JobGuid) -> PortResult<bool> {
        let mut tables = lock(&self.0);
        if tables.jobs.get(&job).is_some_and(|job| job.deleted_at.is_none()) {
            return Ok(false);
        }
        if tables.rows_of(job) == 0 {
            tables.jobs.remove(&job);
            return Ok(true);
        }
        tables.specs.remove(&job);
        tables.tallies.retain(|(of, _, _), _| *of != job);
        tables.totals.retain(|(of, _), _| *of != job);
        tables.checkpoints.retain(|(of, _), _| *of != job);
        tables.awaiting.retain(|(of, _)| *of != job.0);
        tables.dead_letters.retain(|(of, _), _| *of != job);
        Ok(false)
    }
}
