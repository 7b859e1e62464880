//! Settings of jobs: ceilings, deadlines, recovery and retention.

use std::time::Duration;

use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::model::job::LEASE_MARGIN;
use rowmill_core::ports::Ceilings;
use rowmill_core::text::ChunkLimits;

const MIB: u64 = 1024 * 1024;

/// Seconds for which messages live in queues. The template's mapping `StorageDays` counts on it, too.
pub const DEADLINE_MAX: u64 = 14 * 24 * 60 * 60;

/// The longest `Retry-After` of a refused job. Without it, jobs that end slowly would send clients away for hours.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

crate::settings! {
    impl Ceilings {
        owner: u32 = 20, "OwnerJobCeiling" in 1..=100_000;
        job_type: u32 = 100, "TypeJobCeiling" in 1..=100_000;
        system: u32 = 200, "SystemJobCeiling" in 1..=100_000;
    }
}

crate::settings! {
    impl ChunkLimits {
        max_items: u32 = 500, "ChunkMaxItems" in 1..=10_000;
        max_bytes: u64 = MIB;
        max_record_bytes: u64 = MIB, "RecordMaxBytes" in 1024..=16 * MIB;
    }
}

crate::settings! {
    /// Maximum duration of an attempt before the sweep stops it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Deadlines {
        /// The deadline of a request that names none, in seconds.
        pub default_seconds: u64 = 4 * 60 * 60, "DefaultDeadlineSeconds" in 1..=DEADLINE_MAX;
        /// The longest deadline that a request may name, in seconds.
        pub maximum_seconds: u64 = DEADLINE_MAX, "MaximumDeadlineSeconds" in 1..=DEADLINE_MAX;
    }
}

crate::settings! {
    /// When a job is taken for a dead one.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Recovery {
        /// The time without a sign of life after which the sweep recovers a job. Longer than any time limit.
        pub stale: Duration = Duration::from_secs(15 * 60), "StaleSeconds" in 5..=86_400;
    }
}

impl Recovery {
    /// Time after which an invocation that has read a job has ended, whatever its function: no time limit is longer.
    pub fn silence(self) -> Duration {
        self.stale + LEASE_MARGIN
    }
}

crate::settings! {
    /// Grace of runs that are still at work while no chunk may begin.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct StopGrace {
        /// Longer than an invocation of `process-items` and a request together can last, also if clocks differ.
        pub grace: Duration = Duration::from_secs(180), "StopGraceSeconds" in 5..=3600;
    }
}

crate::settings! {
    impl BreakerLimits {
        failures: u32 = 5, "BreakerFailures" in 0..=10_000;
        window: Duration = Duration::from_secs(10 * 60);
        probe: Duration = Duration::from_secs(60), "BreakerProbeSeconds" in 1..=3600;
    }
}

crate::settings! {
    /// Retention of an ended job.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct JobRetention {
        /// The time from its end to its expiry.
        pub retention: Duration = Duration::from_secs(30 * 24 * 60 * 60), "JobRetentionDays";
    }
}
