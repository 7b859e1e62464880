use async_trait::async_trait;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::job::Job;
use rowmill_core::ports::{Attempts, NewAttempt, RedriveError};

#[async_trait]
impl Attempts for InMemoryJobStore {
    async fn redrive(&self, attempt: &NewAttempt) -> Result<Job, RedriveError> {
        let mut tables = lock(&self.0);
        let job = tables.job(attempt.seen.job_guid)?.clone();
        if attempt.was_applied(&job) {
            return Ok(job);
        }
        let Some(next) = attempt.job().filter(|_| job.revision == attempt.seen.revision) else {
            return Err(RedriveError::Moved(Box::new(job)));
        };
        tables.slots.take(&next, attempt.ceilings).map_err(RedriveError::Full)?;
        tables.jobs.insert(next.job_guid, next.clone());
        Ok(next)
    }
}
