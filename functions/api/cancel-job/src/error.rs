//! Why a job is not changed.

use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::owner_priorities::PriorityNotAllowed;
use rowmill_core::ports::PortError;

/// Why a job was not changed; nothing is written then. The texts are the problem details that the client reads.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The caller has no such job.
    #[error("There is no job {0}, or it has expired.")]
    Unknown(JobGuid),
    #[error("The job has ended with status `{}`, so it can no longer be changed.", .0.as_str())]
    Ended(Status),
    #[error("The job has not ended, so it cannot be deleted. Cancel it, and delete it when it has ended.")]
    Active,
    #[error("The job is being stopped, so it can no longer be changed. Wait until it has ended.")]
    Stopping(Status),
    #[error("All items of the job are processed, and it is about to complete.")]
    Completing(Status),
    #[error(
        "The body names no limit. Send at least one of `maxConcurrency`, `tolerance`, `deadlineSeconds` and `priority`."
    )]
    NoLimit,
    #[error("`{field}` {message}")]
    Field { field: &'static str, message: String },
    /// The earliest deadline that has not passed, in seconds.
    #[error(
        "`deadlineSeconds` counts from the creation of the job or from its last redrive, and this deadline has passed. \
         Send {0} or more, or cancel the job."
    )]
    DeadlinePassed(u64),
    /// Rows that the attempt reads would expire before it has ended and its results have expired.
    #[error(
        "The job is too old for this deadline: what is stored of its rows is kept until {0}, and the results must be kept \
         longer. Send a smaller `deadlineSeconds`."
    )]
    TooOld(Timestamp),
    #[error(transparent)]
    Priority(#[from] PriorityNotAllowed),
    #[error(transparent)]
    Port(#[from] PortError),
}
