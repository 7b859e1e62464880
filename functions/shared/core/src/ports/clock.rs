use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{FileGuid, JobGuid, RunId};

/// The time, and waiting.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Now, to the millisecond.
    fn now(&self) -> Timestamp;

    /// Waits.
    async fn sleep(&self, duration: Duration);
}

/// The source of new names and of chance.
pub trait Entropy: Send + Sync {
    /// A name for a run.
    fn run_id(&self) -> RunId;

    /// A name for a job created now; later ones sort behind it.
    fn job_guid(&self, now: Timestamp) -> JobGuid;

    /// A name for an upload.
    fn file_guid(&self) -> FileGuid;

    /// A number from 0 up to and not including 1, for jitter.
    fn fraction(&self) -> f64;
}

/// When something made at `now` goes away, in whole seconds: what the stores keep of it.
pub fn expiry(now: Timestamp, lifetime: Duration) -> Timestamp {
    let end = now.checked_add(lifetime).unwrap_or(Timestamp::MAX);
    Timestamp::from_second(end.as_second()).unwrap_or(end)
}
