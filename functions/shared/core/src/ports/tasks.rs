use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{JobGuid, Owner};
use crate::model::task::{Task, TaskId};
use crate::ports::PortError;

/// The rows of [tasks](crate::model::task): what workers outside of the stack look for.
#[async_trait]
pub trait Tasks: Send + Sync {
    /// Offers a task. If it has a row, that one stays, unless its message is from before a pause. Before the row, notes
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

    /// Tasks of a job of this type and owner, due or not, in no order: at most `limit`.
    async fn of_job(&self, job_type: &str, owner: &Owner, job: JobGuid, limit: usize) -> Result<Vec<Task>, PortError>;

    /// True if an owner has a task of this type, due or not.
    async fn are_there(&self, job_type: &str, owner: &Owner) -> Result<bool, PortError>;

    /// Makes a task due at another time, and notes its holder if there is one. Condition: it is due as seen.
    async fn put_off(&self, seen: &Task, due_at: Timestamp, holder: Option<&str>) -> Result<(), PortError>;

    /// Removes a task. Condition: it is due as seen. So one that was offered again stays.
    async fn remove(&self, seen: &Task) -> Result<(), PortError>;
}
