//! The machine's clock and randomness.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::ids::{FileGuid, JobGuid, RunId};
use rowmill_core::ports::{Clock, Entropy};
use uuid::{Builder, Uuid};

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        // Stored times have milliseconds, so times that are compared with them must not have more.
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// The system's source of random bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn run_id(&self) -> RunId {
        let [b0, b1, b2, b3, b4, b5, _, _, _, _, b6, ..] = Uuid::new_v4().into_bytes();
        // Bytes of a version 4 UUID that hold no version or variant bits: all 56 bits are random.
        RunId::from_bytes([b0, b1, b2, b3, b4, b5, b6])
    }

    fn job_guid(&self, now: Timestamp) -> JobGuid {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        let [.., r0, r1, r2, r3, r4, r5, r6, r7, r8, r9] = Uuid::new_v4().into_bytes();
        // Two of these bytes hold the version and variant of the version 4 UUID; version 7 puts its own there.
        JobGuid(Builder::from_unix_timestamp_millis(millis, &[r0, r1, r2, r3, r4, r5, r6, r7, r8, r9]).into_uuid())
    }

    fn file_guid(&self) -> FileGuid {
        FileGuid(Uuid::new_v4())
    }

    fn fraction(&self) -> f64 {
        fastrand::f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_guids_sort_by_creation_time() {
        let at = |ms| SystemEntropy.job_guid(Timestamp::from_millisecond(ms).unwrap());
        let guids = [at(1_700_000_000_000), at(1_700_000_000_001), at(1_700_000_100_000)];
        assert!(guids.is_sorted());
        assert!(guids.iter().all(|guid| guid.0.get_version_num() == 7));
    }

    #[test]
    fn two_drawn_identifiers_are_never_equal() {
        let now = SystemClock.now();
        assert_ne!(SystemEntropy.job_guid(now), SystemEntropy.job_guid(now));
        assert_ne!(SystemEntropy.run_id(), SystemEntropy.run_id());
        assert_ne!(SystemEntropy.file_guid(), SystemEntropy.file_guid());
        assert!((0.0..1.0).contains(&SystemEntropy.fraction()));
    }
}
