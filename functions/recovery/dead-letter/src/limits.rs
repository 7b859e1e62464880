//! The limits of settling a dead letter.

use std::time::Duration;

use rowmill_core::model::job::LEASE_MARGIN;
use rowmill_settings::{CompleteTimes, JobRetention, Recovery};

rowmill_settings::settings! {
    #[derive(Clone, Copy, Debug)]
    pub struct DeadLetterLimits {
        pub timeout: Duration = Duration::from_secs(60), "DeadLetterTimeoutSeconds";
        /// The time limit of `complete-job`.
        pub completions: CompleteTimes;
        /// How long an isolated chunk may stand still before it is given up.
        pub recovery: Recovery;
        pub jobs: JobRetention;
    }
}

impl DeadLetterLimits {
    /// How long after its last tally was closed a job is not given up: another message of its completion, whose run
    /// died, may still be delivered. Longer than the completions queue hides the message, and than the run's lease.
    pub fn completion_patience(&self) -> Duration {
        self.completions.visibility() + self.completions.timeout + LEASE_MARGIN
    }

    pub fn lease(&self) -> Duration {
        self.timeout + LEASE_MARGIN
    }
}
