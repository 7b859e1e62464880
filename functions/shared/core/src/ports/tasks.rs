use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{JobGuid, Owner};
use crate::model::task::{Holder, Task, TaskId};
use crate::ports::PortError;

/// The rows of [tasks](crate::model::task): what workers outside of the stack look for.
#[async_trait]
pub trait Tasks: Send + Sync {
    /// Offers a task. If it has a row, that one stays, unless its message is of an earlier epoch. Before the row, notes
    /// at `now` that its owner has tasks of the type.
    async fn offer(&self, task: &Task, now: Timestamp) -> Result<(), PortError>;

    /// Reads the task of a job of this type and owner.
    async fn task(&self, job_type: &str, owner: &Owner, id: TaskId) -> Result<Option<Task>, PortError>;

    /// Owners that may have tasks of a type, with the time of their last offer: at most `limit`, by their
    /// [place](crate::model::task::place_of), from this one on.
    async fn owners(&self, job_type: &str, from: u32, limit: usize) -> Result<Vec<(Owner, Timestamp)>, PortError>;

    /// Forgets that an owner has tasks of a type, if its last offer was at `last`.
    async fn forget_owner(&self, job_type: &str, owner: &Owner, last: Timestamp) -> Result<(), PortError>;

    /// Tasks of a type and owner that are due by `now`, longest due first: at most `limit`.
    async fn due(&self, job_type: &str, owner: &Owner, now: Timestamp, limit: usize) -> Result<Vec<Task>, PortError>;

    /// Tasks of a type and owner that are due last, or will be, latest first: at most `limit`. Those that were leased
    /// lately come first: they are due at the end of their lease.
    async fn due_last(&self, job_type: &str, owner: &Owner, limit: usize) -> Result<Vec<Task>, PortError>;

    /// Tasks of a job of this type and owner, due or not, in the order of their names: at most `limit`, from behind
    /// `after` on.
    async fn of_job(
        &self,
        job_type: &str,
        owner: &Owner,
        job: JobGuid,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Vec<Task>, PortError>;

    /// True if an owner has a task of this type, due or not.
    async fn are_there(&self, job_type: &str, owner: &Owner) -> Result<bool, PortError>;

    /// Makes a task due at another time, and notes its holder if there is one. Condition: it is due as seen.
    async fn put_off(&self, seen: &Task, due_at: Timestamp, holder: Option<&Holder>) -> Result<(), PortError>;

    /// Removes a task. Condition: it is due as seen. So one that was offered again stays.
    async fn remove(&self, seen: &Task) -> Result<(), PortError>;

    /// Notes that a worker has asked for tasks of a type.
    async fn note_ask(&self, job_type: &str, now: Timestamp) -> Result<(), PortError>;

    /// When a worker was noted last that has asked for tasks of a type.
    async fn last_ask(&self, job_type: &str) -> Result<Option<Timestamp>, PortError>;
}
