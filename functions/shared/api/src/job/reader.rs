//! The jobs of an owner as the API and the live messages show them: the same code for both, so that they never differ.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::ports::{Clock, JobFilter, JobStore, PortError};

use super::{JobPage, JobView};

/// Number of jobs whose counters are read at once.
const COUNTERS_CONCURRENCY: usize = 8;

/// Reads jobs as views: one with its counters, or a page of an owner's.
#[derive(Clone)]
pub struct JobReader {
    /// The rows and counters of the jobs.
    pub jobs: Arc<dyn JobStore>,
    /// Tells which jobs have expired.
    pub clock: Arc<dyn Clock>,
}

impl JobReader {
    /// The owner's job of this name.
    ///
    /// # Errors
    /// `NotFound` if there is none, if it is another owner's, or if it has expired.
    pub async fn owned(&self, owner: &Owner, job_guid: JobGuid) -> Result<Job, PortError> {
        self.jobs.owned(owner, job_guid, self.clock.now()).await
    }

    /// The job with its counters, and with what its unfinished chunks have done.
    pub async fn show(&self, job: &Job) -> Result<JobView, PortError> {
        JobView::read(&*self.jobs, job, self.clock.now()).await
    }

    /// The owner's jobs, newest first.
    pub async fn list(&self, owner: &Owner, filter: &JobFilter) -> Result<JobPage, PortError> {
        let page = self.jobs.jobs(owner, filter, self.clock.now()).await?;
        let shown: Vec<_> = page.jobs.iter().map(|job| JobView::read_for_list(&*self.jobs, job)).collect();
        let jobs = stream::iter(shown).buffered(COUNTERS_CONCURRENCY).try_collect().await?;
        Ok(JobPage { jobs, next: page.next })
    }
}
