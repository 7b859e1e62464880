use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{JobGuid, Owner};
use crate::model::job::Job;
use crate::model::spec::Spec;
use crate::model::states::Status;
use crate::ports::PortError;

/// Reading jobs.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Reads the job row. Returns expired jobs too.
    ///
    /// # Errors
    /// `NotFound`.
    async fn job(&self, job: JobGuid) -> Result<Job, PortError>;

    /// Reads the job's spec.
    ///
    /// # Errors
    /// `NotFound`.
    async fn spec(&self, job: JobGuid) -> Result<Spec, PortError>;

    /// Lists the owner's jobs that have not expired by `now`, newest first.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn jobs(&self, owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError>;
}

/// Which of the owner's jobs to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFilter {
    /// Only jobs in this status.
    pub status: Option<Status>,
    /// Only jobs of this type.
    pub job_type: Option<String>,
    /// The largest number of jobs in the page.
    pub limit: usize,
    /// Only jobs created before this one.
    pub after: Option<JobGuid>,
}

/// A page of an owner's jobs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobPage {
    /// The jobs, newest first.
    pub jobs: Vec<Job>,
    /// The `after` of the next page; none on the last page.
    pub next: Option<JobGuid>,
}
