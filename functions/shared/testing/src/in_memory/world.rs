use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use super::lock;
use rowmill_core::model::ids::{FileGuid, JobGuid, RunId};
use rowmill_core::ports::{Clock, Entropy};

/// A clock that moves only by [`advance`](Self::advance) and by sleeping.
#[derive(Debug)]
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    pub fn at(now: Timestamp) -> Self {
        Self(Mutex::new(now))
    }

    pub fn advance(&self, duration: Duration) {
        let mut now = lock(&self.0);
        *now = now.checked_add(duration).unwrap_or(Timestamp::MAX);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::at(Timestamp::from_millisecond(1_700_000_000_000).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *lock(&self.0)
    }

    async fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

/// Identifiers from a counter: the same in every run of a test.
#[derive(Debug, Default)]
pub struct CountingEntropy(AtomicU64);

impl CountingEntropy {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Entropy for CountingEntropy {
    fn run_id(&self) -> RunId {
        let [_, bytes @ ..] = self.next().to_be_bytes();
        RunId::from_bytes(bytes)
    }

    fn job_guid(&self, now: Timestamp) -> JobGuid {
        let millis = u128::try_from(now.as_millisecond()).unwrap_or(0);
        JobGuid(Uuid::from_u128((millis << 80) | (0x7 << 76) | (0b10 << 62) | u128::from(self.next())))
    }

    fn file_guid(&self) -> FileGuid {
        FileGuid(Uuid::from_u128((0x4 << 76) | (0b10 << 62) | u128::from(self.next())))
    }

    fn fraction(&self) -> f64 {
        0.5
    }
}
