//! External servers: those that job types call, and those that files are fetched from.

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
    /// The external buckets that jobs may read or have results stored in.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct BucketSettings {
        /// The ARNs of those that are read, with commas between them.
        pub inputs: String = String::new(), "InputBuckets";
        /// What the keys that a caller may read begin with. `{owner}` stands for the caller.
        pub input_prefix: String = String::new(), "InputPrefix";
        /// The ARNs of those that are written, with commas between them.
        pub outputs: String = String::new(), "OutputBuckets";
        /// What the keys that a caller may have written begin with. `{owner}` stands for the caller.
        pub output_prefix: String = String::new(), "OutputPrefix";
    }
}
