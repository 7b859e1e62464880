use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{JobGuid, Owner};
use crate::model::job::Job;
use crate::model::job::states::{JobOutcome, Status};
use crate::model::spec::Spec;
use crate::ports::PortError;

#[async_trait]
pub trait Jobs: Send + Sync {
    /// Reads the job row. Returns expired and deleted jobs too.
    ///
    /// # Errors
    /// `NotFound`.
    async fn job(&self, job: JobGuid) -> Result<Job, PortError>;

    /// Reads the job's spec.
    ///
    /// # Errors
    /// `NotFound`.
    async fn spec(&self, job: JobGuid) -> Result<Spec, PortError>;

    /// Lists the owner's jobs that are not [gone](Job::is_gone) by `now`, newest first. Reads an index that may lag behind, and the
    /// current row of each job in it.
    async fn jobs(&self, owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError>;
}

/// Which of the owner's jobs to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFilter {
    pub state: Option<StateFilter>,
    pub job_type: Option<String>,
    /// The largest number of jobs in the page.
    pub limit: usize,
    /// Only jobs created before this one.
    pub after: Option<JobGuid>,
}

impl JobFilter {
    /// True if this job of the owner is listed, as far as the page does not matter.
    pub fn matches(&self, owner: &Owner, job: &Job, now: Timestamp) -> bool {
        job.owner == *owner
            && self.state.is_none_or(|state| state.matches(job))
            && self.job_type.as_ref().is_none_or(|job_type| job.job_type == *job_type)
            && !job.is_gone(now)
    }
}

/// The state of listed jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateFilter {
    Status(Status),
    Outcome(JobOutcome),
}

impl StateFilter {
    /// The status of such jobs: only completed ones have an outcome.
    pub const fn status(self) -> Status {
        match self {
            Self::Status(status) => status,
            Self::Outcome(_) => Status::Completed,
        }
    }

    fn matches(self, job: &Job) -> bool {
        job.status() == self.status()
            && match self {
                Self::Status(_) => true,
                Self::Outcome(outcome) => job.end().is_some_and(|end| end.outcome == Ok(outcome)),
            }
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobPage {
    /// The jobs, newest first.
    pub jobs: Vec<Job>,
    /// The `after` of the next page; none on the last page.
    pub next: Option<JobGuid>,
}
