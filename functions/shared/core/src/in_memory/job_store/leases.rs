use async_trait::async_trait;
use jiff::Timestamp;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use crate::model::ids::{JobGuid, RunId};
use crate::model::job::Lease;
use crate::model::job::states::Transition;
use crate::ports::{Leased, Leases, PortError};

#[async_trait]
impl Leases for InMemoryJobStore {
    async fn lease(&self, job: JobGuid, attempt: u32, lease: Lease, now: Timestamp) -> Result<Leased, PortError> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        let free = job.lease.is_none_or(|held| held.until <= now || held.holder == lease.holder);
        if !job.may_be_leased(attempt) || !free {
            return Ok(Leased::Refused(job.clone()));
        }
        job.lease = Some(lease);
        // A cancelling job is only taken to be ended, and stays cancelling; a paused one to be completed.
        job.status = Transition::Take.apply(job.status).unwrap_or(job.status);
        job.started_at = job.started_at.or(Some(now));
        job.moved_at = now;
        Ok(Leased::Taken(job.clone()))
    }

    async fn release(&self, job: JobGuid, holder: RunId) -> Result<(), PortError> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        job.lease = job.lease.filter(|lease| lease.holder != holder);
        Ok(())
    }
}
