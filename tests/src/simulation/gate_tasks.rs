//! The gate before the tasks table.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::task::{Holder, Task, TaskId};
use rowmill_core::ports::{PortError, Tasks};
use rowmill_testing::in_memory::InMemoryTasks;

use super::gates;
use super::hub::{CallKind, Hub};
use super::invariants::Invariants;
use super::trace::{Brief, job_name};

pub struct GatedTasks {
    pub store: Arc<InMemoryTasks>,
    /// Decides about each call.
    pub hub: Hub,
    pub invariants: Arc<Invariants>,
}

gates!(Tasks for GatedTasks {
    Write offer(task: &Task, now: Timestamp) -> Result<(), PortError>, ["{}", task.brief()],
        check |all, _answer| {
            all.reach("task offered");
            Ok(())
        };
    Read task(job_type: &str, owner: &Owner, id: TaskId) -> Result<Option<Task>, PortError>, ["{}", job_name(id.job)];
    Read owners(job_type: &str, from: u32, limit: usize) -> Result<Vec<(Owner, Timestamp)>, PortError>, ["{job_type}"];
    Write forget_owner(job_type: &str, owner: &Owner, last: Timestamp) -> Result<(), PortError>, ["{owner}"],
        check |all, _answer| {
            all.reach("owner without tasks forgotten");
            Ok(())
        };
    Read due(job_type: &str, owner: &Owner, now: Timestamp, limit: usize) -> Result<Vec<Task>, PortError>, ["{owner}"];
    Read due_last(job_type: &str, owner: &Owner, limit: usize) -> Result<Vec<Task>, PortError>, ["{owner}"];
    Read of_job(job_type: &str, owner: &Owner, job: JobGuid, after: Option<TaskId>, limit: usize)
        -> Result<Vec<Task>, PortError>, ["{}", job_name(job)];
    Read are_there(job_type: &str, owner: &Owner) -> Result<bool, PortError>, ["{owner}"];
    Write put_off(seen: &Task, due_at: Timestamp, holder: Option<&Holder>) -> Result<(), PortError>, ["{}", seen.brief()];
    Write remove(seen: &Task) -> Result<(), PortError>, ["{}", seen.brief()];
    Write note_ask(job_type: &str, now: Timestamp) -> Result<(), PortError>, ["{job_type}"];
    Read last_ask(job_type: &str) -> Result<Option<Timestamp>, PortError>, ["{job_type}"];
});
