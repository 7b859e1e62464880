//! The limits of a sweep.

use std::time::Duration;

use rowmill_settings::{DEADLINE_MAX, JobRetention, ProcessTime, Recovery, StopGrace};

/// The time limit of an invocation, as the template sets it.
pub const TIMEOUT: Duration = Duration::from_secs(60);

rowmill_settings::settings! {
    #[derive(Clone, Copy, Debug)]
    pub struct SweepLimits {
        pub recovery: Recovery;
        /// Only checked: see `rowmill_settings::time_bounds`.
        pub process: ProcessTime;
        /// Retention of a job that ends before anybody took it up.
        pub jobs: JobRetention;
        /// Time after its stop at which the open chunks of a job are closed as skipped.
        pub stop: StopGrace;
        /// The longest time for which an owner may pause a job; then the job is stopped.
        pub longest_pause: Duration = Duration::from_secs(3 * 24 * 60 * 60), "LongestPauseSeconds" in 60..=DEADLINE_MAX;
        pub jobs_max: usize = 100;
        /// Time for which a sweep starts on further jobs. Shorter than an invocation, so that the last job is finished.
        pub time: Duration = TIMEOUT.saturating_sub(Duration::from_secs(15));
        /// Maximum number of open tallies a recovery sends again, 64 chunks each, beside those that others wait for.
        pub tallies_max: u32 = 4;
        /// The longest time between two recoveries of a job. It doubles with each that brings no sign of life.
        pub backoff_max: Duration = Duration::from_secs(4 * 60 * 60), "SweepBackoffMaxSeconds" in 1..=86_400;
    }
}
