//! The limits of a split.

use std::time::Duration;

use rowmill_core::model::packing::PackedLimits;
use rowmill_formats::{RANGE_BYTES, ReadAhead};
use rowmill_settings::{SplitTime, StopGrace};

rowmill_settings::settings! {
    #[derive(Clone, Copy, Debug)]
    pub struct SplitLimits {
        /// Size of one read of a file.
        pub range_bytes: u64 = RANGE_BYTES;
        /// Number of such reads in flight. One range more is in memory.
        pub reads_in_flight: usize = 8;
        /// The most first bytes of a file of a job over many that are read to detect its format.
        pub first_max_bytes: u64 = 64 * 1024;
        /// Limits of the text of a packed upload.
        pub packed: PackedLimits;
        /// Time before the end of its invocation at which a split is handed over to the next one.
        pub margin: Duration = Duration::from_secs(20), "SplitMarginSeconds" in 1..=50;
        pub time: SplitTime;
        /// The grace of earlier runs, before a resend.
        pub stop: StopGrace;
    }
}

impl SplitLimits {
    /// How a file is read ahead.
    pub const fn ahead(&self) -> ReadAhead {
        ReadAhead { range_bytes: self.range_bytes, reads: self.reads_in_flight }
    }

    /// Duration of a lease: longer than an invocation can last.
    pub fn lease(&self) -> Duration {
        self.time.limit + self.margin
    }
}
