//! The limits of a split.

use std::time::Duration;

use rowmill_core::model::packing::PackedLimits;
use rowmill_formats::{RANGE_BYTES, ReadAhead};

rowmill_aws::settings! {
    /// The limits of a split.
    #[derive(Clone, Copy, Debug)]
    pub struct SplitLimits {
        /// How many bytes of a file one read asks for.
        pub range_bytes: u64 = RANGE_BYTES;
        /// How many such reads are in flight. One range more is in memory.
        pub reads_in_flight: usize = 8, "SplitReadsInFlight";
        /// How much text may come out of a packed upload.
        pub packed: PackedLimits;
        /// How long before the end of its invocation a split is handed over to the next invocation.
        pub margin: Duration = Duration::from_secs(20), "SplitMarginSeconds";
        /// The time limit of an invocation.
        pub timeout: Duration = Duration::from_secs(300), "SplitTimeoutSeconds";
    }
}

impl SplitLimits {
    /// How far ahead a file is read.
    pub const fn read_ahead(&self) -> ReadAhead {
        ReadAhead { range_bytes: self.range_bytes, reads: self.reads_in_flight }
    }

    /// How long a lease is held: longer than an invocation can last.
    pub fn lease(&self) -> Duration {
        self.timeout + self.margin
    }
}
