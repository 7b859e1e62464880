//! Servers of others: those that job types call, and those that files are fetched from.

crate::settings! {
    /// The job types that call a target.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct JobTargets {
        /// JSON: see `rowmill_targets::config`.
        pub json: String = String::new(), "JobTargets";
    }
}

crate::settings! {
    /// The servers that files are fetched from.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct FetchSettings {
        /// JSON: see `rowmill_targets::sources::hosts`.
        pub hosts: String = String::new(), "FetchHosts";
    }
}

crate::settings! {
    /// The buckets of others that jobs may read.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct InputSettings {
        /// Their ARNs, with commas between them.
        pub buckets: String = String::new(), "InputBuckets";
        /// What the keys that a caller may read begin with. `{owner}` stands for the caller.
        pub prefix: String = String::new(), "InputPrefix";
    }
}
