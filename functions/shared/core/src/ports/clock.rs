use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{FileGuid, JobGuid, RunId};

/// The current time, and waiting.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The current time, in milliseconds.
    fn now(&self) -> Timestamp;

    async fn sleep(&self, duration: Duration);
}

/// The source of new identifiers and of randomness.
pub trait Entropy: Send + Sync {
    fn run_id(&self) -> RunId;

    /// A new job identifier. Later ones sort behind it.
    fn job_guid(&self, now: Timestamp) -> JobGuid;

    fn file_guid(&self) -> FileGuid;

    /// A random number from 0 (inclusive) to 1 (exclusive), for jitter.
    fn fraction(&self) -> f64;
}

/// When something created at `now` expires, in whole seconds: the stores keep no fraction.
pub fn expiry(now: Timestamp, lifetime: Duration) -> Timestamp {
    let end = now.checked_add(lifetime).unwrap_or(Timestamp::MAX);
    Timestamp::from_second(end.as_second()).unwrap_or(end)
}
