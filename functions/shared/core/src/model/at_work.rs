//! Who works on what: tasks as their rows and their checkpoints tell.

use jiff::Timestamp;

use crate::model::checkpoint::Checkpoint;
use crate::model::task::{Holder, Task};
use crate::words::words;

words! {
    /// Who has a task.
    TaskState {
        /// Nobody. It waits for a worker.
        Offered = "offered",
        /// A worker, which has leased it, or a service that is called with it. Its time is not over.
        Held = "held",
        /// One that has not beaten in time, so it has died. The next worker that asks gets the task, or the service is
        /// called again.
        Dead = "dead",
    }
}

/// A task with what its checkpoint says of it.
#[derive(Clone, PartialEq, Debug)]
pub struct AtWork {
    pub task: Task,
    pub state: TaskState,
    /// Number of its chunk's items that are done.
    pub done: u32,
    /// The last beat or report of its holder, if it has begun.
    pub last_beat_at: Option<Timestamp>,
    /// When the time of its holder is over.
    pub until: Option<Timestamp>,
}

impl AtWork {
    pub fn of(task: Task, checkpoint: Option<&Checkpoint>, now: Timestamp) -> Self {
        let note = checkpoint.and_then(|checkpoint| checkpoint.in_flight);
        let is_held = checkpoint.and_then(Checkpoint::held_until).is_some_and(|until| until > now);
        let state = match note {
            Some(_) if is_held => TaskState::Held,
            // One that has not begun costs nothing.
            Some(note) if !note.unconfirmed => TaskState::Dead,
            _ => TaskState::Offered,
        };
        let note = note.filter(|_| state != TaskState::Offered);
        Self {
            state,
            done: checkpoint.map_or(0, |checkpoint| checkpoint.done),
            last_beat_at: note.filter(|note| !note.unconfirmed).and(checkpoint).map(|checkpoint| checkpoint.at),
            until: note.map(|note| note.until),
            task,
        }
    }

    /// The worker that has it. `None` if nobody does, a service does, or the row does not name the worker yet.
    pub fn holder(&self) -> Option<&Holder> {
        self.task.holder.as_ref().filter(|_| self.state != TaskState::Offered)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fixtures;
    use crate::model::ids::RunId;
    use crate::model::task::TaskTerms;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_checkpoint_says_who_has_a_task_and_whether_the_worker_lives() {
        let message = fixtures::chunk_message(0, 0);
        let (address, token) = (message.address, RunId::from_bytes([1; RunId::BYTES]));
        let holder = Holder { worker: "w1".to_owned(), since: at(0) };
        let task =
            Task { job_type: "render".to_owned(), message, due_at: at(0), called: false, holder: Some(holder.clone()) };
        let at_work = |checkpoint: &Checkpoint, second| AtWork::of(task.clone(), Some(checkpoint), at(second));
        let is = |seen: &AtWork| (seen.state, seen.last_beat_at, seen.until, seen.holder().cloned());
        let blank = Checkpoint { done: 2, ..Checkpoint::blank(address, at(0)) };
        assert_eq!(is(&at_work(&blank, 1)), (TaskState::Offered, None, None, None), "its last holder gave it back");
        let leased = blank.leased(token, 1, 9, at(0));
        assert_eq!(is(&at_work(&leased, 1)), (TaskState::Held, None, Some(at(30)), Some(holder.clone())));
        assert_eq!(is(&at_work(&leased, 40)), (TaskState::Offered, None, None, None), "it never began");
        let terms = TaskTerms { beat: Duration::from_secs(60), items: 9, called: false, minimum_client: None };
        let beaten = leased.beaten(token, &terms, at(10)).unwrap();
        let held = (TaskState::Held, Some(at(10)), Some(at(100)), Some(holder.clone()));
        assert_eq!(is(&at_work(&beaten, 104)), held, "clocks differ");
        let dead = (TaskState::Dead, Some(at(10)), Some(at(100)), Some(holder));
        assert_eq!((is(&at_work(&beaten, 105)), at_work(&beaten, 105).done), (dead, 2));
        assert_eq!(AtWork::of(task.clone(), None, at(1)).state, TaskState::Offered);
    }
}
