//! Who works on what, on the wire.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rowmill_core::model::at_work::{AtWork, TaskState};
use rowmill_core::words::Open;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of the tasks of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskPage {
    /// Tasks, in an order of their own. May be fewer than `limit` although more follow.
    pub tasks: Vec<TaskAtWork>,
    /// The `after` of the next page; null on the last one.
    pub next: Option<String>,
}

/// A task of a job, and who works on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskAtWork {
    /// Names the task.
    pub task_id: String,
    /// The 1-based row of its first item. In a redrive its other items are the failed ones from there on.
    pub first_row: u64,
    /// Number of its items.
    pub items: u32,
    /// Number of them that are done. They count in the job once all are.
    pub done: u32,
    /// Who has it.
    #[schema(value_type = TaskState)]
    pub state: Open<TaskState>,
    /// The name of the worker that has it, or had it when it died; null if it is offered, or a service has it.
    pub worker: Option<String>,
    /// When that worker leased it.
    pub since: Option<Timestamp>,
    /// The last beat or report of that worker; null if it has not begun.
    pub last_beat_at: Option<Timestamp>,
    /// When the time of that worker is over, unless it beats before.
    pub until: Option<Timestamp>,
}

impl TaskAtWork {
    /// The view of a task.
    pub fn of(seen: &AtWork) -> Self {
        let (message, holder) = (&seen.task.message, seen.holder());
        Self {
            task_id: seen.task.id().to_string(),
            first_row: message.chunk.first_row,
            items: message.chunk.items,
            done: seen.done,
            state: seen.state.into(),
            worker: holder.map(|holder| holder.worker.clone()),
            since: holder.map(|holder| holder.since),
            last_beat_at: seen.last_beat_at,
            until: seen.until,
        }
    }
}

/// The workers that have tasks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerList {
    /// By job type and name.
    pub workers: Vec<WorkerView>,
    /// False if there may be more tasks than one request looks at.
    pub complete: bool,
}

/// A worker with the tasks of a job type that it has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerView {
    /// The name that it gave when it leased them.
    pub worker: String,
    /// The job type.
    pub job_type: String,
    /// Number of tasks that it holds.
    pub tasks_held: u64,
    /// Number of tasks at which it has died: it did not beat in time. The next worker that asks gets them.
    pub tasks_dead: u64,
    /// Number of items of all these tasks.
    pub items: u64,
    /// Number of them that are done, by this worker or by one before it.
    pub items_done: u64,
    /// When it leased the oldest of them.
    pub since: Timestamp,
    /// Its last beat or report; null if it has begun none of them.
    pub last_beat_at: Option<Timestamp>,
}

impl WorkerView {
    /// The workers that have these tasks, by job type and name.
    pub fn of_tasks<'a>(seen: impl IntoIterator<Item = &'a AtWork>) -> Vec<Self> {
        let mut workers: BTreeMap<(&str, &str), Self> = BTreeMap::new();
        for (seen, holder) in seen.into_iter().filter_map(|seen| Some((seen, seen.holder()?))) {
            let job_type = &seen.task.job_type;
            let worker = workers.entry((job_type, &holder.worker)).or_insert_with(|| Self {
                worker: holder.worker.clone(),
                job_type: job_type.clone(),
                tasks_held: 0,
                tasks_dead: 0,
                items: 0,
                items_done: 0,
                since: holder.since,
                last_beat_at: None,
            });
            let is_dead = u64::from(seen.state == TaskState::Dead);
            worker.tasks_held += 1 - is_dead;
            worker.tasks_dead += is_dead;
            worker.items += u64::from(seen.task.message.chunk.items);
            worker.items_done += u64::from(seen.done);
            worker.since = worker.since.min(holder.since);
            worker.last_beat_at = worker.last_beat_at.max(seen.last_beat_at);
        }
        workers.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use rowmill_core::model::task::{Holder, Task};
    use rowmill_testing::fixtures;

    use super::*;

    #[test]
    fn the_tasks_of_a_worker_are_added_up_by_type() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let seen = |worker: &str, job_type: &str, state, since: i64, beat: Option<i64>| {
            let holder = Some(Holder { worker: worker.to_owned(), since: at(since) });
            let message = fixtures::chunk_message(0, 0);
            let task = Task { job_type: job_type.to_owned(), message, due_at: at(0), called: false, holder };
            AtWork { task, state, done: 2, last_beat_at: beat.map(at), until: None }
        };
        let tasks = [
            seen("w2", "render", TaskState::Held, 5, Some(9)),
            seen("w2", "render", TaskState::Dead, 3, Some(4)),
            seen("w2", "mail", TaskState::Held, 1, None),
            seen("w1", "render", TaskState::Held, 2, None),
            seen("w1", "render", TaskState::Offered, 1, None),
        ];
        let workers = WorkerView::of_tasks(&tasks);
        let names: Vec<_> = workers.iter().map(|of| (of.job_type.as_str(), of.worker.as_str())).collect();
        assert_eq!(names, [("mail", "w2"), ("render", "w1"), ("render", "w2")]);
        let items = u64::from(tasks[0].task.message.chunk.items);
        let both = WorkerView {
            worker: "w2".to_owned(),
            job_type: "render".to_owned(),
            tasks_held: 1,
            tasks_dead: 1,
            items: 2 * items,
            items_done: 4,
            since: at(3),
            last_beat_at: Some(at(9)),
        };
        assert_eq!(workers[2], both);
        assert_eq!((workers[1].tasks_held, workers[1].last_beat_at), (1, None), "a task that is offered is nobody's");
    }
}
