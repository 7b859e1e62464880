//! Settings of the limits of a caller.

use rowmill_api::route_limits::RouteLimits;
use rowmill_core::model::outstanding::OutstandingLimits;
use rowmill_core::model::request_limits::RequestLimits;

use super::StartError;

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
        /// JSON: see `rowmill_api::route_limits`.
        pub json: String = String::new(), "RouteLimits";
    }
}

impl RouteLimitSettings {
    /// The limits, parsed.
    pub fn limits(&self) -> Result<RouteLimits, StartError> {
        Ok(RouteLimits::parse(&self.json, self.posts)?)
    }
}

crate::settings! {
    impl OutstandingLimits {
        uploads: u32 = 100, "OwnerUploadsOutstanding";
        bytes: u64 = 200 * GIB, "OwnerBytesOutstanding";
    }
}
