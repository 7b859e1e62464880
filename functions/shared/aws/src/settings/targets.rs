//! Job types that call a target.

use super::Secret;

crate::settings! {
    /// The job types that call a target.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct JobTargets {
        /// JSON: see `rowmill_targets::config`.
        pub json: String = String::new(), "JobTargets";
    }
}

crate::settings! {
    /// How webhooks know Rowmill.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Webhooks {
        /// Signs the calls.
        pub secret: Secret = Secret::default(), "WebhookSecret";
    }
}
