//! The tasks of a job, and who works on them.

use std::sync::Arc;

use rowmill_api::at_work::{TaskAtWork, TaskPage};
use rowmill_core::model::job::Job;
use rowmill_core::model::task::TaskId;
use rowmill_core::ports::{Clock, JobStore, PortError, Tasks};
use rowmill_core::progress::tasks::at_work;

/// The use case and the ports it works through.
pub struct TaskPages {
    pub jobs: Arc<dyn JobStore>,
    pub tasks: Arc<dyn Tasks>,
    pub clock: Arc<dyn Clock>,
}

impl TaskPages {
    /// The tasks of a job behind `after`: at most `limit`. A job that has ended has none.
    pub async fn page(&self, job: &Job, after: Option<TaskId>, limit: usize) -> Result<TaskPage, PortError> {
        if job.is_ended() {
            return Ok(TaskPage { tasks: Vec::new(), next: None });
        }
        let mut tasks = self.tasks.of_job(&job.job_type, &job.owner, job.job_guid, after, limit + 1).await?;
        let has_more = tasks.len() > limit;
        tasks.truncate(limit);
        let next = tasks.last().filter(|_| has_more).map(|last| last.id().to_string());
        tasks.retain(|task| !job.is_past(task.id().chunk.attempt));
        let seen = at_work(&*self.jobs, tasks, self.clock.now()).await?;
        Ok(TaskPage { tasks: seen.iter().map(TaskAtWork::of).collect(), next })
    }
}
