//! The limits of an upload.

use rowmill_core::model::outstanding::OutstandingLimits;
use rowmill_settings::{FileLimits, Links};

const MIB: u64 = 1024 * 1024;

rowmill_settings::settings! {
    #[derive(Clone, Copy, Debug)]
    pub struct UploadLimits {
        /// The largest file that can be the body of the request, in bytes. A Lambda payload has at most 6 MB, and
        /// base64 makes a file a third longer.
        pub direct_max_bytes: u64 = 5_000_000;
        /// The largest file sent by a single presigned request, in bytes. A larger file is sent in parts, and a failed
        /// part can be sent again alone.
        pub single_put_max_bytes: u64 = 64 * MIB;
        /// The length of a part, in bytes; longer if a file would have too many parts. S3 refuses parts below 5 MiB.
        pub part_bytes: u64 = 16 * MIB;
        /// Size and retention of any file.
        pub files: FileLimits;
        pub outstanding: OutstandingLimits;
        /// Validity of presigned requests.
        pub links: Links;
    }
}
