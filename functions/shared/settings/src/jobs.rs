//! Settings of jobs: ceilings, deadlines, recovery and retention.

use std::time::Duration;

use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::model::job::LEASE_MARGIN;
use rowmill_core::ports::Ceilings;
use rowmill_core::text::ChunkLimits;

const MIB: u64 = 1024 * 1024;

/// The longest `Retry-After` of a refused job. Without it, jobs that end slowly would send clients away for hours.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

crate::settings! {
    impl Ceilings {
        owner: u32 = 20, "OwnerJobCeiling";
        job_type: u32 = 100, "TypeJobCeiling";
        system: u32 = 200, "SystemJobCeiling";
    }
}

crate::settings! {
    impl ChunkLimits {
        max_items: u32 = 500, "ChunkMaxItems";
        max_bytes: u64 = MIB;
        max_record_bytes: u64 = MIB, "RecordMaxBytes";
    }
}

crate::settings! {
    /// Maximum duration of an attempt before the sweep stops it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Deadlines {
        /// The deadline of a request that names none, in seconds.
        pub default_seconds: u64 = 4 * 60 * 60, "DefaultDeadlineSeconds";
        /// The longest deadline that a request may name, in seconds.
        pub maximum_seconds: u64 = 14 * 24 * 60 * 60, "MaximumDeadlineSeconds";
    }
}

crate::settings! {
    /// When a job is taken for a dead one.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Recovery {
        /// The time without a sign of life after which the sweep recovers a job. Longer than any time limit.
        pub stale: Duration = Duration::from_secs(15 * 60), "StaleSeconds";
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
        pub grace: Duration = Duration::from_secs(180), "StopGraceSeconds";
    }
}

crate::settings! {
    impl BreakerLimits {
        failures: u32 = 5, "BreakerFailures";
        window: Duration = Duration::from_secs(10 * 60);
        probe: Duration = Duration::from_secs(60), "BreakerProbeSeconds";
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
