//! Settings of files: their sizes, and the retention of files and links.

use std::time::Duration;

use rowmill_core::model::packing::PackedLimits;

/// The largest number of bytes that a setting may name: the largest whole number that every reader of JSON takes exactly.
pub(crate) const BYTES_MAX: u64 = (1 << 53) - 1;

crate::settings! {
    /// The limits of an uploaded or dropped file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct FileLimits {
        /// The largest file, in bytes.
        pub max_bytes: u64 = 100 * 1024 * 1024 * 1024, "UploadMaxBytes" in 1..=BYTES_MAX;
        /// Time in which a file can start jobs.
        pub retention: Duration = Duration::from_secs(7 * 24 * 60 * 60), "UploadRetentionDays";
    }
}

crate::settings! {
    impl PackedLimits {
        expanded_max_bytes: u64 = PackedLimits::DEFAULT.expanded_max_bytes, "ExpandedMaxBytes" in 1024 * 1024..=BYTES_MAX;
        ratio_max: u64 = PackedLimits::DEFAULT.ratio_max;
        sheet_cells_max: u64 = PackedLimits::DEFAULT.sheet_cells_max;
    }
}

crate::settings! {
    /// Presigned links, to upload and to results.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Links {
        pub expiry: Duration = Duration::from_secs(60 * 60), "PresignExpirySeconds" in 60..=43_200;
    }
}
