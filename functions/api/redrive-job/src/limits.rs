//! The limits of a redrive.

use std::time::Duration;

use rowmill_core::ports::Ceilings;
use rowmill_settings::{Deadlines, RETRY_AFTER_MAX, Recovery};

rowmill_settings::settings! {
    #[derive(Clone, Copy, Debug)]
    pub struct RedriveLimits {
        pub ceilings: Ceilings;
        pub deadlines: Deadlines;
        /// When the sweep first looks at the attempt.
        pub recovery: Recovery;
        /// The largest corrected file, in bytes. It is held in memory.
        pub corrected_max_bytes: u64 = 5_000_000;
        /// The longest `Retry-After` of a refused redrive.
        pub retry_after_max: Duration = RETRY_AFTER_MAX;
    }
}
