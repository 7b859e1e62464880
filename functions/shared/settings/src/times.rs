//! Time limits that several functions count on.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::time_bounds;
use crate::{Setting, StartError};

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
        /// The same parameter.
        pub dead_letter: CompleteTime;
    }
}

/// Checks the times that a function reads against each other.
///
/// # Errors
/// The first one that is too short, or a setting that cannot be read.
pub fn check_times(settings: impl IntoIterator<Item = Setting>) -> Result<(), StartError> {
    let mut values = BTreeMap::new();
    for setting in settings {
        values.insert(setting.parameter, setting.value()?);
    }
    Ok(time_bounds::check(|parameter| values.get(parameter)?.trim().parse().ok())?)
}
