//! Settings of the limits of a caller.

use rowmill_core::model::outstanding::OutstandingLimits;
use rowmill_core::model::request_limits::RequestLimits;

const GIB: u64 = 1024 * 1024 * 1024;

crate::settings! {
    impl RequestLimits {
        per_minute: u32 = 120, "PostsPerMinute";
        per_hour: u32 = 2400, "PostsPerHour";
    }
}

crate::settings! {
    impl OutstandingLimits {
        uploads: u32 = 100, "OwnerUploadsOutstanding";
        bytes: u64 = 200 * GIB, "OwnerBytesOutstanding";
    }
}
