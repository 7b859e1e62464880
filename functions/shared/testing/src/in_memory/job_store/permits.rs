use async_trait::async_trait;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::permit::{Permit, PermitSeen};
use rowmill_core::model::task::TaskId;
use rowmill_core::ports::{CheckpointMoved, Permits, PortError};

#[async_trait]
impl Permits for InMemoryJobStore {
    async fn permits(&self, job_type: &str) -> Result<Vec<Permit>, PortError> {
        let tables = lock(&self.0);
        let first = (job_type.to_owned(), 0);
        Ok(tables.permits.range(first..).take_while(|((of, _), _)| of == job_type).map(|(_, permit)| *permit).collect())
    }

    async fn lease_with_permit(
        &self,
        job: JobGuid,
        leased: &Checkpoint,
        permit: &PermitSeen,
    ) -> Result<bool, PortError> {
        let mut tables = lock(&self.0);
        let Some(token) = leased.by else { return Ok(false) };
        let place = (permit.job_type.clone(), permit.number);
        let taken = Permit { number: permit.number, task: TaskId { job, chunk: leased.chunk }, token };
        let there = tables.permits.get(&place).copied();
        if there == Some(taken) && tables.checkpoints.get(&(job, leased.chunk)) == Some(leased) {
            return Ok(true);
        }
        if there.map(|there| there.token) != permit.token {
            return Ok(false);
        }
        let is_moved = tables.move_checkpoint(job, leased) == CheckpointMoved::Won;
        if is_moved {
            tables.permits.insert(place, taken);
        }
        Ok(is_moved)
    }

    async fn give_permit_back(&self, job_type: &str, seen: &Permit) -> Result<(), PortError> {
        let mut tables = lock(&self.0);
        let place = (job_type.to_owned(), seen.number);
        if tables.permits.get(&place) == Some(seen) {
            tables.permits.remove(&place);
        }
        Ok(())
    }
}
