//! The limits that job types have of their own.

use rowmill_core::model::job_type_limits::JobTypeLimits;

use super::StartError;

crate::settings! {
    /// The limits that job types have of their own.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct JobTypeSettings {
        /// JSON: see `rowmill_core::model::job_type_limits`.
        pub json: String = String::new(), "JobTypes";
    }
}

impl JobTypeSettings {
    /// The limits, parsed.
    pub fn limits(&self) -> Result<JobTypeLimits, StartError> {
        Ok(JobTypeLimits::parse(&self.json)?)
    }
}
