use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;

use super::lock;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::task::{Holder, Task, TaskId, place_of};
use rowmill_core::ports::{PortError, Tasks};

/// The tasks table in memory.
#[derive(Debug, Default)]
pub struct InMemoryTasks(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    tasks: BTreeMap<TaskId, Task>,
    /// When each owner was offered a task of a type last.
    owners: BTreeMap<(String, Owner), Timestamp>,
    /// When a worker asked for tasks of a type last.
    asks: BTreeMap<String, Timestamp>,
}

impl InMemoryTasks {
    pub fn every_task(&self) -> Vec<Task> {
        lock(&self.0).tasks.values().cloned().collect()
    }
}

impl Tables {
    fn of<'a>(&'a self, job_type: &'a str, owner: &'a Owner) -> impl Iterator<Item = &'a Task> {
        self.tasks.values().filter(move |task| task.job_type == job_type && task.message.owner == *owner)
    }
}

#[async_trait]
impl Tasks for InMemoryTasks {
    async fn offer(&self, task: &Task, now: Timestamp) -> Result<(), PortError> {
        let mut tables = lock(&self.0);
        tables.owners.insert((task.job_type.clone(), task.message.owner.clone()), now);
        let there = tables.tasks.get(&task.id());
        if there.is_none_or(|there| there.message.epoch < task.message.epoch) {
            tables.tasks.insert(task.id(), task.clone());
        }
        Ok(())
    }

    async fn task(&self, job_type: &str, owner: &Owner, id: TaskId) -> Result<Option<Task>, PortError> {
        Ok(lock(&self.0).of(job_type, owner).find(|task| task.id() == id).cloned())
    }

    async fn owners(&self, job_type: &str, from: u32, limit: usize) -> Result<Vec<(Owner, Timestamp)>, PortError> {
        let tables = lock(&self.0);
        let of_type = tables.owners.iter().filter(|((of, _), _)| of == job_type);
        let mut owners: Vec<_> = of_type.map(|((_, owner), at)| (owner.clone(), *at)).collect();
        owners.retain(|(owner, _)| place_of(owner) >= from);
        owners.sort_by_key(|(owner, _)| place_of(owner));
        owners.truncate(limit);
        Ok(owners)
    }

    async fn forget_owner(&self, job_type: &str, owner: &Owner, last: Timestamp) -> Result<(), PortError> {
        let mut tables = lock(&self.0);
        let key = (job_type.to_owned(), owner.clone());
        if tables.owners.get(&key) == Some(&last) {
            tables.owners.remove(&key);
        }
        Ok(())
    }

    async fn due(&self, job_type: &str, owner: &Owner, now: Timestamp, limit: usize) -> Result<Vec<Task>, PortError> {
        let tables = lock(&self.0);
        let mut due: Vec<Task> = tables.of(job_type, owner).filter(|task| task.due_at <= now).cloned().collect();
        due.sort_by_key(|task| task.due_at);
        due.truncate(limit);
        Ok(due)
    }

    async fn due_last(&self, job_type: &str, owner: &Owner, limit: usize) -> Result<Vec<Task>, PortError> {
        let mut tasks: Vec<Task> = lock(&self.0).of(job_type, owner).cloned().collect();
        tasks.sort_by_key(|task| Reverse(task.due_at));
        tasks.truncate(limit);
        Ok(tasks)
    }

    async fn of_job(
        &self,
        job_type: &str,
        owner: &Owner,
        job: JobGuid,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Vec<Task>, PortError> {
        let mut tasks: Vec<Task> =
            lock(&self.0).of(job_type, owner).filter(|task| task.id().job == job).cloned().collect();
        tasks.sort_by_key(|task| task.id().to_string());
        tasks.retain(|task| after.is_none_or(|after| task.id().to_string() > after.to_string()));
        tasks.truncate(limit);
        Ok(tasks)
    }

    async fn are_there(&self, job_type: &str, owner: &Owner) -> Result<bool, PortError> {
        Ok(lock(&self.0).of(job_type, owner).next().is_some())
    }

    async fn put_off(&self, seen: &Task, due_at: Timestamp, holder: Option<&Holder>) -> Result<(), PortError> {
        if let Some(task) = lock(&self.0).tasks.get_mut(&seen.id()).filter(|task| task.due_at == seen.due_at) {
            task.due_at = due_at;
            if let Some(holder) = holder {
                task.holder = Some(holder.clone());
            }
        }
        Ok(())
    }

    async fn remove(&self, seen: &Task) -> Result<(), PortError> {
        let mut tables = lock(&self.0);
        if tables.tasks.get(&seen.id()).is_some_and(|task| task.due_at == seen.due_at) {
            tables.tasks.remove(&seen.id());
        }
        Ok(())
    }

    async fn note_ask(&self, job_type: &str, now: Timestamp) -> Result<(), PortError> {
        lock(&self.0).asks.insert(job_type.to_owned(), now);
        Ok(())
    }

    async fn last_ask(&self, job_type: &str) -> Result<Option<Timestamp>, PortError> {
        Ok(lock(&self.0).asks.get(job_type).copied())
    }
}
