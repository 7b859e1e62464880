//! Simulated time and seeded randomness.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::ids::{FileGuid, JobGuid, RunId};
use rowmill_core::ports::{Clock, Entropy};
use uuid::Uuid;

use super::hub::Hub;

/// The clock of an invocation: it differs from the time by at most `skew`.
pub struct VirtualClock {
    pub hub: Hub,
    pub skew: Duration,
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let spread = self.hub.current().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        self.hub.now() + self.skew * (spread % 201) as u32 / 100 - self.skew
    }

    async fn sleep(&self, duration: Duration) {
        self.hub.sleep(duration).await;
    }
}

/// IDs from a counter, randomness from a seed.
pub struct SeededEntropy(Mutex<(u64, fastrand::Rng)>);

impl SeededEntropy {
    /// The IDs and the randomness of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new((0, fastrand::Rng::with_seed(seed))))
    }

    fn next(&self) -> u64 {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0 += 1;
        inner.0
    }
}

impl Entropy for SeededEntropy {
    fn run_id(&self) -> RunId {
        let [_, bytes @ ..] = self.next().to_be_bytes();
        RunId::from_bytes(bytes)
    }

    fn job_guid(&self, now: Timestamp) -> JobGuid {
        let ms = u128::try_from(now.as_millisecond()).unwrap_or(0);
        JobGuid(Uuid::from_u128((ms << 80) | (0x7 << 76) | (0b10 << 62) | u128::from(self.next())))
    }

    fn file_guid(&self) -> FileGuid {
        FileGuid(Uuid::from_u128((0x4 << 76) | (0b10 << 62) | u128::from(self.next())))
    }

    fn fraction(&self) -> f64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.f64()
    }
}
