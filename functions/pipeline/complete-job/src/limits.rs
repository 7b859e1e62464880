//! The limits of a completion.

use std::time::Duration;

use rowmill_core::model::job::LEASE_MARGIN;
use rowmill_core::model::packing::PackedLimits;
use rowmill_settings::{CompleteTime, JobRetention};

use crate::compose::writer::PART_BYTES;

/// The share of an invocation that is left for what follows composing: the end of the job, or the handover.
const MARGIN_SHARE: u32 = 4;

rowmill_settings::settings! {
    #[derive(Clone, Copy, Debug)]
    pub struct CompleteLimits {
        pub time: CompleteTime;
        pub jobs: JobRetention;
        /// Limits of the text of a packed upload.
        pub packed: PackedLimits;
        /// Maximum number of bytes of an upload that are copied because they were never dispatched.
        pub unprocessed_max_bytes: u64 = 1024 * 1024 * 1024;
        /// Size of a part of a result.
        pub part_bytes: usize = PART_BYTES;
    }
}

impl CompleteLimits {
    /// Time before the end of its invocation at which a composition is handed over to the next one.
    pub fn margin(&self) -> Duration {
        self.time.limit / MARGIN_SHARE
    }

    pub fn lease(&self) -> Duration {
        self.time.limit + LEASE_MARGIN
    }
}
