//! Time limits that several functions count on.

use std::time::Duration;

/// A queue hides a delivered message for this many time limits of the function that reads the queue. AWS asks for at
/// least six, so that a throttled invocation does not make its messages visible while the poller still holds them. The
/// template's mapping `SixTimes` has the products.
pub const VISIBILITY_TIMEOUTS: u32 = 6;

crate::settings! {
    /// The time limit of `complete-job`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct CompleteTimes {
        pub timeout: Duration = Duration::from_secs(60), "CompleteTimeoutSeconds";
    }
}

impl CompleteTimes {
    /// How long the completions queue hides a message from its next delivery.
    pub fn visibility(self) -> Duration {
        self.timeout * VISIBILITY_TIMEOUTS
    }
}
