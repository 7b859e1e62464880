//! The limits of a split.

use std::time::Duration;

use rowmill_core::model::packing::PackedLimits;

rowmill_aws::settings! {
    /// The limits of a split.
    #[derive(Clone, Copy, Debug)]
    pub struct SplitLimits {
        /// How many bytes are read at once. Two such ranges are in memory.
        pub range_bytes: u64 = 4 * 1024 * 1024;
        /// How much text may come out of a packed upload.
        pub packed: PackedLimits;
        /// How long before the end of its invocation a split is handed over to the next invocation.
        pub margin: Duration = Duration::from_secs(20), "SplitMarginSeconds";
        /// The time limit of an invocation.
        pub timeout: Duration = Duration::from_secs(300), "SplitTimeoutSeconds";
    }
}

impl SplitLimits {
    /// How long a lease is held: longer than an invocation can last.
    pub fn lease(&self) -> Duration {
        self.timeout + self.margin
    }
}
