//! Notes that workers ask for tasks, so that a job whose tasks wait can tell why.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::lend::TaskWork;

/// A process notes one of the requests for a type in this time. All others cost nothing.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// The time of the last note of this process, by job type.
#[derive(Debug, Default)]
pub struct Asks(Mutex<BTreeMap<String, Timestamp>>);

impl Asks {
    /// True if a request is to be noted.
    fn take(&self, job_type: &str, now: Timestamp) -> bool {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = noted.get(job_type).is_none_or(|last| *last + NOTED_EVERY <= now);
        if is_due {
            noted.insert(job_type.to_owned(), now);
        }
        is_due
    }
}

impl TaskWork {
    /// Notes that a worker asks for a type. No worker waits for a note that fails: the next process writes its own.
    pub(crate) async fn note_ask(&self, job_type: &str) {
        let now = self.clock.now();
        if self.asks.take(job_type, now)
            && let Err(error) = self.tasks.note_ask(job_type, now).await
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "request of a worker not noted");
        }
    }
}
