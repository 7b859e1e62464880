use crate::model::job::Job;
use crate::ports::PortError;

/// Why an attempt was not ended.
#[derive(Debug, thiserror::Error)]
pub enum WriteLost {
    /// Its condition failed. Holds the current job.
    #[error("the job has changed since it was read")]
    Condition(Box<Job>),
    #[error(transparent)]
    Port(#[from] PortError),
}
