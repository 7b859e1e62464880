//! The limits of settling a dead letter.

use std::time::Duration;

use rowmill_core::model::job::LEASE_MARGIN;
use rowmill_settings::{JobRetention, Recovery, TimeLimits, VISIBILITY_TIMEOUTS};

rowmill_settings::settings! {
    #[derive(Clone, Copy, Debug)]
    pub struct DeadLetterLimits {
        pub times: TimeLimits;
        /// Time for which an isolated chunk may stand still before it is given up. Longer than a run.
        pub recovery: Recovery;
        pub jobs: JobRetention;
    }
}

impl DeadLetterLimits {
    /// Time after its last tally was closed for which a job is not given up: another message of its completion, whose
    /// run died, may still be delivered. Longer than the completions queue hides the message, and than the run's lease.
    pub fn completion_patience(&self) -> Duration {
        self.times.complete.limit * (VISIBILITY_TIMEOUTS + 1) + LEASE_MARGIN
    }

    pub fn lease(&self) -> Duration {
        self.times.dead_letter.limit + LEASE_MARGIN
    }
}
