//! What holds a job up now: the reads, for [`progress::why`](rowmill_core::progress::why) to decide from.

use std::sync::Arc;

use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::model::job::states::{Phase, Status};
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::why::JobWhy;
use rowmill_core::ports::{Breakers, Clock, JobFilter, JobStore, PortError, StateFilter, Tasks};
use rowmill_core::progress::checkpoints;
use rowmill_core::progress::counters::Counters;
use rowmill_core::progress::task_reasons::TasksSeen;
use rowmill_core::progress::tasks::at_work;
use rowmill_core::progress::why::{Others, Seen, looked_at, reasons, waits_for_capacity};

/// Number of other jobs of the owner that are named.
const OTHERS_MAX: usize = 10;

/// Number of tasks that are looked at.
const TASKS_MAX: usize = 100;

/// The use case and the ports it works through.
pub struct JobReasons {
    pub jobs: Arc<dyn JobStore>,
    pub breakers: Arc<dyn Breakers>,
    pub tasks: Arc<dyn Tasks>,
    pub type_limits: Arc<JobTypeLimits>,
    pub clock: Arc<dyn Clock>,
}

impl JobReasons {
    pub async fn of(&self, job: &Job) -> Result<JobWhy, PortError> {
        let now = self.clock.now();
        let counters = Counters::read(&*self.jobs, job).await?;
        let others = if waits_for_capacity(job) { Some(self.others(job).await?) } else { None };
        let tasks = self.tasks(job).await?;
        let seen = Seen {
            job,
            counters: &counters,
            breaker: self.breakers.breaker(&job.job_type).await?,
            lanes: self.type_limits.of(&job.job_type).concurrency,
            checkpoints: if tasks.is_some() { Vec::new() } else { self.checkpoints(job, &counters).await? },
            tasks,
            others,
            now,
        };
        Ok(JobWhy { job_guid: job.job_guid, at: now, reasons: reasons(&seen) })
    }

    /// The first tasks of a job that could go on.
    async fn tasks(&self, job: &Job) -> Result<Option<TasksSeen>, PortError> {
        if !matches!(job.phase, Phase::Runnable) {
            return Ok(None);
        }
        let mut tasks = self.tasks.of_job(&job.job_type, &job.owner, job.job_guid, None, TASKS_MAX).await?;
        tasks.retain(|task| !job.is_past(task.id().chunk.attempt));
        if tasks.is_empty() {
            return Ok(None);
        }
        let last_ask = self.tasks.last_ask(&job.job_type).await?;
        Ok(Some(TasksSeen { tasks: at_work(&*self.jobs, tasks, self.clock.now()).await?, last_ask }))
    }

    async fn checkpoints(&self, job: &Job, counters: &Counters) -> Result<Vec<Checkpoint>, PortError> {
        let chunks = if job.is_ended() { Vec::new() } else { looked_at(job, counters) };
        let found = checkpoints::of_chunks(&*self.jobs, chunks.into_iter().map(|chunk| (job.job_guid, chunk))).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The counters of active jobs, and those of the owner that use workers.
    async fn others(&self, job: &Job) -> Result<Others, PortError> {
        let mut jobs: Vec<JobGuid> = Vec::new();
        for status in [Status::Running, Status::Waiting] {
            let state = Some(StateFilter::Status(status));
            let filter = JobFilter { state, limit: OTHERS_MAX + 1, ..JobFilter::default() };
            let page = self.jobs.jobs(&job.owner, &filter, self.clock.now()).await?;
            jobs.extend(page.jobs.iter().map(|other| other.job_guid).filter(|other| *other != job.job_guid));
        }
        jobs.truncate(OTHERS_MAX);
        Ok(Others { jobs, taken: self.jobs.taken(&job.owner, &job.job_type).await? })
    }
}
