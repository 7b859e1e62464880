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
        uploads: u32 = 100, "OwnerUploadsOutstanding";
        bytes: u64 = 200 * GIB, "OwnerBytesOutstanding";
    }
}
