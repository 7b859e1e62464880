//! The limits of an upload.

use rowmill_aws::settings::{FileLimits, Links};

const MIB: u64 = 1024 * 1024;

rowmill_aws::settings! {
    /// The limits of an upload.
    #[derive(Clone, Copy, Debug)]
    pub struct UploadLimits {
        /// The largest file in the request itself, in bytes. A payload of Lambda has 6 MB at most, and base64 makes a
        /// file a third longer.
        pub direct_max_bytes: u64 = 5_000_000;
        /// The largest file sent by a single presigned request, in bytes. A larger one is sent in parts, which can be
        /// sent again one by one.
        pub single_put_max_bytes: u64 = 64 * MIB;
        /// The shortest part, in bytes, except for the last. S3 refuses parts below 5 MiB.
        pub part_bytes: u64 = 16 * MIB;
        /// Size and retention of any file.
        pub files: FileLimits;
        /// How long presigned requests can be used.
        pub links: Links;
    }
}
