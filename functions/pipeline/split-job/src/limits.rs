//! The limits of a split.

use std::time::Duration;

use rowmill_core::model::packing::PackedLimits;
use rowmill_formats::RANGE_BYTES;
use rowmill_settings::{SplitTime, StopGrace};

rowmill_settings::settings! {
    #[derive(Clone, Copy, Debug)]
    pub struct SplitLimits {
        /// Size of one read of a file.
        pub range_bytes: u64 = RANGE_BYTES;
        /// Number of such reads in flight. One range more is in memory.
        pub reads_in_flight: usize = 8;
        /// Limits of the text of a packed upload.
        pub packed: PackedLimits;
        /// Time before the end of its invocation at which a split is handed over to the next one.
        pub margin: Duration = Duration::from_secs(20), "SplitMarginSeconds";
        pub time: SplitTime;
        /// The grace of earlier runs, before a resend.
        pub stop: StopGrace;
    }
}

impl SplitLimits {
    /// Duration of a lease: longer than an invocation can last.
    pub fn lease(&self) -> Duration {
        self.time.limit + self.margin
    }
}
