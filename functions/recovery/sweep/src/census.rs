//! Counts the tasks of workers and of services that answer later, for metrics and alarms: nobody else sees a task that
//! no worker asks for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::model::at_work::{AtWork, TaskState};
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::model::task::{Task, TaskLook};
use rowmill_core::ports::{Clock, JobStore, PortError, Tasks, found};
use rowmill_core::progress::tasks::with_checkpoints;

/// Number of owners that are looked at, over all job types.
const OWNERS_READ: usize = 100;

/// Number of due and of leased tasks of an owner that are read. Both have less than the 1 MB of an answer of DynamoDB.
const ROWS_READ: usize = 1_000;

/// The use case and the ports it works through.
pub struct TaskCensus {
    pub jobs: Arc<dyn JobStore>,
    pub tasks: Arc<dyn Tasks>,
    pub clock: Arc<dyn Clock>,
    /// The job types with tasks.
    pub job_types: Vec<String>,
}

/// The metrics of the tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskCounts {
    /// Tasks that a worker or a service could have.
    pub offered: u64,
    /// Tasks that workers and services hold.
    pub held: u64,
    /// Tasks whose holder has died, and that nobody has got since.
    pub dead: u64,
    /// For how long the oldest of the offered and the dead ones has waited.
    pub oldest: Duration,
}

impl TaskCensus {
    /// Counts the tasks. `None` if no job type has any.
    pub async fn count(&self) -> Result<Option<TaskCounts>, PortError> {
        if self.job_types.is_empty() {
            return Ok(None);
        }
        let (mut counts, mut owners_left) = (TaskCounts::default(), OWNERS_READ);
        for job_type in &self.job_types {
            let owners = if owners_left > 0 { self.tasks.owners(job_type, 0, owners_left).await? } else { Vec::new() };
            owners_left -= owners.len();
            for (owner, _) in owners {
                let now = self.clock.now();
                let due = self.tasks.due(job_type, &owner, now, ROWS_READ).await?;
                self.count_due(due, now, &mut counts).await?;
                let last = self.tasks.due_last(job_type, &owner, ROWS_READ).await?;
                // One that is not due is held: it is due at the end of its lease, as the last look has seen it.
                counts.held += last.iter().filter(|task| task.due_at > now).count() as u64;
            }
        }
        Ok(Some(counts))
    }

    /// A due task is counted as a look at it would find it. Those of jobs whose chunks may not begin wait for no worker.
    async fn count_due(&self, due: Vec<Task>, now: Timestamp, counts: &mut TaskCounts) -> Result<(), PortError> {
        let mut jobs: BTreeMap<JobGuid, Option<Job>> = BTreeMap::new();
        // One that nobody ever had has no checkpoint.
        let had = |task: &Task| task.called || task.holder.is_some();
        let (leased, fresh): (Vec<Task>, Vec<Task>) = due.into_iter().partition(had);
        let fresh = fresh.into_iter().map(|task| (task, None));
        for (task, checkpoint) in with_checkpoints(&*self.jobs, leased).await?.into_iter().chain(fresh) {
            let id = task.id();
            let job = match jobs.entry(id.job) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(found(self.jobs.job(id.job).await)?),
            };
            let checkpoint = checkpoint.unwrap_or_else(|| Checkpoint::blank(id.chunk, now));
            let due_at = task.due_at;
            match TaskLook::at(&task.message, job.as_ref(), &checkpoint, now) {
                TaskLook::Held(_) => counts.held += 1,
                TaskLook::Free => {
                    let is_dead = AtWork::of(task, Some(&checkpoint), now).state == TaskState::Dead;
                    *(if is_dead { &mut counts.dead } else { &mut counts.offered }) += 1;
                    let waits = Duration::try_from(now.duration_since(due_at)).unwrap_or_default();
                    counts.oldest = counts.oldest.max(waits);
                }
                TaskLook::GiveBack | TaskLook::Past => {}
            }
        }
        Ok(())
    }
}
