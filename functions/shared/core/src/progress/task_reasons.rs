//! What holds up a job whose items are processed elsewhere: by workers, or by a service that answers later.

use std::time::Duration;

use jiff::Timestamp;

use crate::model::at_work::{AtWork, TaskState};
use crate::model::why::{Reason, ReasonCode};
use crate::progress::why::Seen;

/// Workers without a task ask every few seconds, and one request a minute is noted. If none was for this long, nobody
/// asks.
const ASKED_LATELY: Duration = Duration::from_secs(150);

/// The tasks of a job.
pub struct TasksSeen {
    /// Some of them, at least one.
    pub tasks: Vec<AtWork>,
    /// When a worker has asked for its type last.
    pub last_ask: Option<Timestamp>,
}

impl TasksSeen {
    fn in_state(&self, state: TaskState) -> Vec<&AtWork> {
        self.tasks.iter().filter(|task| task.state == state).collect()
    }

    /// True if workers ask for its type, or if none does because a service is called.
    fn is_asked_for(&self, now: Timestamp) -> bool {
        self.last_ask.is_some_and(|asked| asked + ASKED_LATELY > now) || self.tasks.iter().any(|task| task.task.called)
    }
}

pub(super) fn no_worker(seen: &Seen<'_>) -> Option<Reason> {
    let tasks = seen.tasks.as_ref().filter(|tasks| !tasks.is_asked_for(seen.now))?;
    let (offered, job_type) = (tasks.in_state(TaskState::Offered), &seen.job.job_type);
    let oldest = offered.iter().map(|task| task.task.due_at).min()?;
    let message = match tasks.last_ask {
        Some(_) => format!("No worker has asked for tasks of `{job_type}` since then. Start one, or more of them."),
        None => format!("Tasks of `{job_type}` wait for a worker, and none has asked yet. Start one."),
    };
    let reason = Reason::new(ReasonCode::NoWorker, message).since(tasks.last_ask.or(Some(oldest)));
    Some(reason.number("tasksOffered", offered.len() as u64))
}

pub(super) fn worker_died(seen: &Seen<'_>) -> Option<Reason> {
    let dead = seen.tasks.as_ref()?.in_state(TaskState::Dead);
    let since = dead.iter().filter_map(|task| task.last_beat_at).min()?;
    let message = "Who had tasks of the job has died: nothing has beaten in time since then. The next worker that asks gets \
                   them, or the service is called again.";
    let reason = Reason::new(ReasonCode::WorkerDied, message).since(since);
    Some(of_tasks(reason.number("tasksDead", dead.len() as u64), &dead))
}

pub(super) fn tasks_held(seen: &Seen<'_>) -> Option<Reason> {
    let held = seen.tasks.as_ref()?.in_state(TaskState::Held);
    if held.is_empty() {
        return None;
    }
    let since = held.iter().filter_map(|task| Some(task.holder()?.since)).min();
    let message = "Tasks of the job are in the hands of workers or of a service, the oldest of them since then. The items of \
                   a task count when all are done.";
    let reason = Reason::new(ReasonCode::TasksHeld, message).since(since);
    Some(of_tasks(reason.number("tasksHeld", held.len() as u64), &held))
}

pub(super) fn tasks_offered(seen: &Seen<'_>) -> Option<Reason> {
    let tasks = seen.tasks.as_ref().filter(|tasks| tasks.is_asked_for(seen.now))?;
    let offered = tasks.in_state(TaskState::Offered);
    let oldest = offered.iter().map(|task| task.task.due_at).min()?;
    let message =
        "Tasks wait for a worker, or for a call of their service. Workers are busy, or get tasks of other jobs first.";
    let reason = Reason::new(ReasonCode::TasksOffered, message).since(oldest);
    Some(reason.number("tasksOffered", offered.len() as u64))
}

/// The reason with the items of these tasks, and those of them that are done.
fn of_tasks(reason: Reason, tasks: &[&AtWork]) -> Reason {
    let items = |number: fn(&AtWork) -> u32| tasks.iter().map(|task| u64::from(number(task))).sum::<u64>();
    reason.number("items", items(|task| task.task.message.chunk.items)).number("itemsDone", items(|task| task.done))
}
