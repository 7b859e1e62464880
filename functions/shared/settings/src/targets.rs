//! Job types that call a target.

crate::settings! {
    /// The job types that call a target.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct JobTargets {
        /// JSON: see `rowmill_targets::config`.
        pub json: String = String::new(), "JobTargets";
    }
}
