//! Settings of the limits of a caller.

use rowmill_core::model::outstanding::OutstandingLimits;
use rowmill_core::model::request_limits::RequestLimits;

use crate::files::BYTES_MAX;

const GIB: u64 = 1024 * 1024 * 1024;

crate::settings! {
    impl RequestLimits {
        per_minute: u32 = 120, "PostsPerMinute" in 1..=1_000_000;
        per_hour: u32 = 2400, "PostsPerHour" in 1..=1_000_000;
    }
}

crate::settings! {
    /// The limits of a caller's requests to each route.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct RouteLimitSettings {
        /// Those of a route that changes something and has no others.
        pub posts: RequestLimits;
        /// JSON: see `route_limits` of the API.
        pub json: String = String::new(), "RouteLimits";
    }
}

crate::settings! {
    impl OutstandingLimits {
        uploads: u32 = 100, "OwnerUploadsOutstanding" in 1..=1000;
        bytes: u64 = 200 * GIB, "OwnerBytesOutstanding" in 1..=BYTES_MAX;
    }
}
