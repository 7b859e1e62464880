//! Looks at tasks that are due, and who works on tasks.

use std::time::Duration;

use jiff::Timestamp;

use crate::model::at_work::AtWork;
use crate::model::checkpoint::Checkpoint;
use crate::model::job::Job;
use crate::model::messages::ChunkMessage;
use crate::model::task::{Task, TaskId, TaskLook};
use crate::ports::{JobStore, PortError, Queue, Tasks};
use crate::progress::checkpoints;

/// Time between two looks of the sweep at a job with tasks that services are called with. Nobody else finds that a
/// service has died.
pub const LOOK_AT_CALLED: Duration = Duration::from_secs(45);

/// Time after which the message of a task that a service is called with again may be lost.
const CALL_AGAIN: Duration = Duration::from_secs(300);

/// Looks at tasks that are due: the rows and the queue that a look writes.
#[derive(Clone, Copy)]
pub struct TaskLooks<'a> {
    pub tasks: &'a dyn Tasks,
    /// The items queue, for a task that no worker may process any more, or whose service is called again.
    pub chunks: &'a dyn Queue<ChunkMessage>,
}

impl TaskLooks<'_> {
    /// True if the task is free. Otherwise does with it what [`TaskLook`] says.
    pub async fn is_free(
        self,
        task: &Task,
        job: Option<&Job>,
        checkpoint: &Checkpoint,
        now: Timestamp,
    ) -> Result<bool, PortError> {
        match TaskLook::at(&task.message, job, checkpoint, now) {
            TaskLook::Free => return Ok(true),
            TaskLook::Held(until) => self.tasks.put_off(task, until, None).await?,
            TaskLook::GiveBack => self.give_back(task).await?,
            TaskLook::Past => self.tasks.remove(task).await?,
        }
        Ok(false)
    }

    /// Sends the message of a task to the items queue, and then removes the task: `process-items` decides what becomes of
    /// the chunk.
    pub async fn give_back(self, task: &Task) -> Result<(), PortError> {
        self.chunks.send(std::slice::from_ref(&task.message)).await?;
        self.tasks.remove(task).await
    }

    /// Has the service of a task called again, which has not got it, or has died. The row stays: should the message be
    /// lost, the next look sends it again.
    pub async fn call_again(self, task: &Task, now: Timestamp) -> Result<(), PortError> {
        self.chunks.send(std::slice::from_ref(&task.message)).await?;
        self.tasks.put_off(task, now + CALL_AGAIN, None).await
    }
}

/// Removes the task of a chunk that needs none any more. If its row is gone, a look has given the chunk back.
pub async fn remove(tasks: &dyn Tasks, job: &Job, id: TaskId) -> Result<(), PortError> {
    match tasks.task(&job.job_type, &job.owner, id).await? {
        Some(task) => tasks.remove(&task).await,
        None => Ok(()),
    }
}

/// Reads the checkpoint of each of these tasks.
pub async fn with_checkpoints(
    jobs: &dyn JobStore,
    tasks: Vec<Task>,
) -> Result<Vec<(Task, Option<Checkpoint>)>, PortError> {
    let chunks = tasks.iter().map(Task::id).map(|id| (id.job, id.chunk));
    let read = checkpoints::of_chunks(jobs, chunks).await?;
    Ok(tasks.into_iter().zip(read).collect())
}

/// Reads who works on these tasks.
pub async fn at_work(jobs: &dyn JobStore, tasks: Vec<Task>, now: Timestamp) -> Result<Vec<AtWork>, PortError> {
    let read = with_checkpoints(jobs, tasks).await?.into_iter();
    Ok(read.map(|(task, checkpoint)| AtWork::of(task, checkpoint.as_ref(), now)).collect())
}
