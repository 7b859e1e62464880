//! The ports in memory, for tests and simulations. They check every condition as the real adapters do.

mod batch_runner;
mod breakers;
mod events;
mod item_table;
mod job_store;
mod live;
mod objects;
mod queue;
mod quotas;
mod record_store;
mod tasks;
mod upload_store;
mod world;

pub use batch_runner::InlineBatchRunner;
pub use breakers::InMemoryBreakers;
pub use events::InMemoryEvents;
pub use item_table::InMemoryItemTable;
pub use job_store::InMemoryJobStore;
pub use live::{InMemoryLive, InMemorySender};
pub use objects::InMemoryObjects;
pub use queue::{InMemoryDeliveries, InMemoryQueue};
pub use quotas::InMemoryQuotas;
pub use record_store::InMemoryRecordStore;
pub use tasks::InMemoryTasks;
pub use upload_store::InMemoryUploadStore;
pub use world::{CountingEntropy, ManualClock};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after another test thread panicked: the state is consistent after every method.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
