//! Time limits that several functions count on.

use std::time::Duration;

use super::variable;
use crate::time_bounds::{self, TooShort};

/// A queue hides a delivered message for this many time limits of the function that reads the queue. AWS asks for at
/// least six, so that a throttled invocation does not make its messages visible while the poller still holds them. The
/// template's mapping `SixTimes` has the products.
pub const VISIBILITY_TIMEOUTS: u32 = 6;

crate::settings! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct SplitTime {
        pub limit: Duration = Duration::from_secs(300), "SplitTimeoutSeconds";
    }
}

crate::settings! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct ProcessTime {
        pub limit: Duration = Duration::from_secs(90), "ProcessTimeoutSeconds";
    }
}

crate::settings! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct CompleteTime {
        pub limit: Duration = Duration::from_secs(60), "CompleteTimeoutSeconds";
    }
}

crate::settings! {
    /// The time limits of the functions that queues feed.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct TimeLimits {
        pub split: SplitTime;
        pub process: ProcessTime;
        pub complete: CompleteTime;
        pub dead_letter: Duration = Duration::from_secs(60), "DeadLetterTimeoutSeconds";
    }
}

/// Checks the times that this function has against each other.
///
/// # Errors
/// The first one that is too short.
pub fn check_times() -> Result<(), TooShort> {
    time_bounds::check(|parameter| std::env::var(variable(parameter)).ok()?.trim().parse().ok())
}
