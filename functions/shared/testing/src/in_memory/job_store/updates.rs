use async_trait::async_trait;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::job::Job;
use rowmill_core::ports::{PortError, UpdateAnswer, Updates};

#[async_trait]
impl Updates for InMemoryJobStore {
    async fn update(&self, seen: &Job, next: &Job, _ahead: Usage) -> Result<UpdateAnswer, PortError> {
        let mut tables = lock(&self.0);
        let job = tables.job(seen.job_guid)?;
        if job.revision != seen.revision {
            return Ok(UpdateAnswer::Refused(job.clone()));
        }
        let written = Job { revision: job.revision + 1, ..next.clone() };
        if let Err(full) = tables.slots.follow(seen, next) {
            return Ok(UpdateAnswer::Full(full));
        }
        *tables.job(seen.job_guid)? = written.clone();
        let Some(others) = tables.after_update.take() else { return Ok(UpdateAnswer::Written(written)) };
        let job = tables.job(seen.job_guid)?;
        others(job);
        job.revision += 1;
        Ok(UpdateAnswer::WrittenBefore(job.clone()))
    }
}
