//! Keeps a task, or gives it back.

use rowmill_api::task::TaskOrder;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::Job;
use rowmill_core::model::task::{Task, TaskId, TaskTerms};
use rowmill_core::ports::{CheckpointMoved, PortError};
use rowmill_core::progress::update::update_job;

use crate::error::TaskError;
use crate::lend::TaskWork;

/// A task, with its job and its checkpoint as its holder finds them.
pub(crate) struct Held {
    pub job: Job,
    pub checkpoint: Checkpoint,
}

impl TaskWork {
    /// Reads a task whose token this is, or was when its last items were reported.
    pub(crate) async fn held(&self, id: TaskId, token: RunId) -> Result<Held, TaskError> {
        let gone = || TaskError::Gone(id);
        let job = self.job(id.job).await?.filter(|job| !job.is_past(id.chunk.attempt)).ok_or_else(gone)?;
        let checkpoint = self.checkpoint(id).await?;
        if checkpoint.by == Some(token) { Ok(Held { job, checkpoint }) } else { Err(gone()) }
    }

    pub(crate) async fn row(&self, job: &Job, id: TaskId) -> Result<Task, TaskError> {
        let task = self.tasks.task(&job.job_type, &job.owner, id).await?;
        task.ok_or(TaskError::Gone(id))
    }

    /// Extends a lease. The first beat begins the job, and says that the worker has begun.
    ///
    /// # Errors
    /// `Gone`; `Port`.
    pub async fn beat(&self, id: TaskId, token: RunId) -> Result<(TaskOrder, TaskTerms), TaskError> {
        let Held { job, checkpoint } = self.held(id, token).await?;
        let terms = self.terms(&job, id)?;
        let Some(note) = checkpoint.held_by(token) else { return Ok((TaskOrder::Finished, terms)) };
        let job = self.begun(job).await?;
        let order = order_for(&job);
        if order != TaskOrder::Continue {
            return Ok((order, terms));
        }
        let beaten = checkpoint.beaten(token, &terms, self.clock.now()).ok_or(TaskError::Gone(id))?;
        self.move_to(id, &beaten).await?;
        // What became of the job before the first item is seen.
        let order = match note.unconfirmed {
            true => self.job(id.job).await?.map_or(TaskOrder::Stopping, |job| order_for(&job)),
            false => order,
        };
        Ok((order, terms))
    }

    /// The terms of a task. If its type has no workers any more, nobody holds it.
    pub(crate) fn terms(&self, job: &Job, id: TaskId) -> Result<TaskTerms, TaskError> {
        self.types.terms(&job.job_type).map_err(|_| TaskError::Gone(id))
    }

    /// Notes that a chunk of the job begins, unless one has.
    pub(crate) async fn begun(&self, job: Job) -> Result<Job, PortError> {
        match job.first_chunk_at {
            Some(_) => Ok(job),
            None => {
                let now = self.clock.now();
                Ok(update_job(&*self.jobs, &job, |job| job.begin(now)).await?.job())
            }
        }
    }

    pub(crate) async fn move_to(&self, id: TaskId, moved: &Checkpoint) -> Result<(), TaskError> {
        match self.jobs.move_checkpoint(id.job, moved).await? {
            CheckpointMoved::Won => Ok(()),
            // The holder has sent two requests at once. This one is sent again.
            CheckpointMoved::Lost(there) if there.by == moved.by => {
                Err(PortError::unavailable("moving a checkpoint", "another request of its holder was faster").into())
            }
            CheckpointMoved::Lost(_) => Err(TaskError::Gone(id)),
        }
    }

    /// Gives the rest of a task back, so that another worker gets it. If the worker `failed` at it, that is a death of
    /// these items: they are lent in smaller parts, and in the end an item that fails every worker fails as poison.
    ///
    /// # Errors
    /// `Gone`; `Port`.
    pub async fn release(&self, id: TaskId, token: RunId, failed: bool) -> Result<(), TaskError> {
        let Held { job, checkpoint } = self.held(id, token).await?;
        if let Some(released) = checkpoint.released(token, failed, self.clock.now()) {
            self.move_to(id, &released).await?;
        }
        self.is_due(&job, id).await?;
        self.end_permit(&job.job_type, token).await
    }

    /// Makes the rest of a task due. If this fails, it is due when its holder would have been given up. A service is
    /// called again.
    pub(crate) async fn is_due(&self, job: &Job, id: TaskId) -> Result<(), TaskError> {
        let row = match self.row(job, id).await {
            Err(TaskError::Gone(_)) => return Ok(()),
            row => row?,
        };
        match row.called {
            true => self.looks().call_again(&row, self.clock.now()).await?,
            false => self.tasks.put_off(&row, self.clock.now(), None).await?,
        }
        Ok(())
    }
}

/// What the holder of a task of this job is to do.
pub(crate) fn order_for(job: &Job) -> TaskOrder {
    match job {
        job if job.is_paused() => TaskOrder::Paused,
        job if job.is_stopped() => TaskOrder::Stopping,
        _ => TaskOrder::Continue,
    }
}
