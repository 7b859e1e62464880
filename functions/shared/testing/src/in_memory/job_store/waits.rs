use async_trait::async_trait;
use uuid::Uuid;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::{AWAITING_MAX, PortError, Waits};

#[async_trait]
impl Waits for InMemoryJobStore {
    async fn awaiting(&self, awaited: Uuid) -> Result<Vec<JobGuid>, PortError> {
        let tables = lock(&self.0);
        let jobs = tables.awaiting.iter().filter(|(of, _)| *of == awaited).map(|(_, job)| *job);
        Ok(jobs.take(AWAITING_MAX).collect())
    }

    async fn put_found(&self, found: &Spec) -> Result<Spec, PortError> {
        let mut tables = lock(&self.0);
        let stored = tables.specs.get_mut(&found.job_guid).ok_or(PortError::NotFound)?;
        if stored.source.is_awaited() {
            *stored = found.clone();
        }
        Ok(stored.clone())
    }
}
