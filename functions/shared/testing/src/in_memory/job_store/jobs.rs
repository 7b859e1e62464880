use async_trait::async_trait;
use jiff::Timestamp;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::{JobFilter, JobPage, Jobs, PortError};

#[async_trait]
impl Jobs for InMemoryJobStore {
    async fn job(&self, job: JobGuid) -> Result<Job, PortError> {
        lock(&self.0).job(job).cloned()
    }

    async fn spec(&self, job: JobGuid) -> Result<Spec, PortError> {
        lock(&self.0).specs.get(&job).cloned().ok_or(PortError::NotFound)
    }

    async fn jobs(&self, owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError> {
        let tables = lock(&self.0);
        let wanted =
            |job: &&Job| filter.matches(owner, job, now) && filter.after.is_none_or(|after| job.job_guid < after);
        let mut found = tables.jobs.values().rev().filter(wanted);
        let jobs: Vec<Job> = found.by_ref().take(filter.limit).cloned().collect();
        let next = found.next().and(jobs.last()).map(|last| last.job_guid);
        Ok(JobPage { jobs, next })
    }
}
