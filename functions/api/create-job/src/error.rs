//! The errors of the use case.

use jiff::Timestamp;
use rowmill_core::job_types::{NotPrunable, NotUndoable};
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::owner_priorities::PriorityNotAllowed;
use rowmill_core::ports::processor::ParamsError;
use rowmill_core::ports::{CreateError, Full, PortError};
use rowmill_core::text::HeadError;
use rowmill_formats::{DecodeError, FormatError, OpenError};

use crate::request::InvalidField;

/// Why no job was created. Nothing is written then. The texts are the problem details that the client reads.
#[derive(Debug, thiserror::Error)]
pub enum CreateJobError {
    #[error(transparent)]
    Field(#[from] InvalidField),
    #[error("There is no job type `{name}`. The job types are {}.", known.join(", "))]
    UnknownJobType { name: String, known: Vec<String> },
    /// The caller has no such upload.
    #[error("There is no upload {0}, or it has expired. Upload the file again.")]
    UnknownUpload(FileGuid),
    /// The upload has not received all of its bytes.
    #[error("Upload {0} is incomplete. Send its bytes first.")]
    UploadIncomplete(FileGuid),
    #[error("Upload {0} is still being fetched. Try again when it is `ready`.")]
    UploadFetching(FileGuid),
    /// The caller has no such job.
    #[error("There is no job {job}, or it has expired.")]
    UnknownJob { field: &'static str, job: JobGuid },
    /// The job whose result is to be read has not ended.
    #[error("Job {0} has not ended.")]
    JobActive(JobGuid),
    /// The caller has no such job to undo, or to prune after.
    #[error("There is no job {0}, or it has expired.")]
    NoSuchJob(JobGuid),
    /// The caller has no such dataset to delete.
    #[error("There is no dataset `{0}`.")]
    NoSuchDataset(String),
    #[error("The dataset cannot be pruned after this job: {0}.")]
    NotPrunable(NotPrunable),
    #[error("The job cannot be undone: {0}.")]
    NotUndoable(NotUndoable),
    /// Until then a run that has not seen the end of the job may write records.
    #[error("The last items of the job may be at work until {0}. Undo it after that.")]
    RunsLive(Timestamp),
    #[error("Upload {file} could not be fetched. {detail}")]
    UploadFailed { file: FileGuid, detail: String },
    /// The stored length is not the announced one.
    #[error("Upload {file} has {stored} bytes, but {announced} were announced. Upload the file again.")]
    UploadSize { file: FileGuid, announced: u64, stored: u64 },
    /// The object was replaced after the upload was complete.
    #[error("Upload {0} was replaced after it was complete. Upload the file again.")]
    UploadChanged(FileGuid),
    /// The text of the file cannot be read in the declared or detected format.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The file is not packed as declared, or in an unknown way.
    #[error(transparent)]
    Packing(#[from] FormatError),
    #[error(transparent)]
    Packed(#[from] DecodeError),
    #[error(transparent)]
    Params(#[from] ParamsError),
    #[error(transparent)]
    Priority(#[from] PriorityNotAllowed),
    /// A limit of active jobs is reached.
    #[error("{}", .0.admission.advice())]
    Full(Full),
    /// The idempotency key was used for another request.
    #[error("The `Idempotency-Key` was used for another request. Use a new key for a new job.")]
    KeyReused,
    #[error(transparent)]
    Port(#[from] PortError),
}

impl From<OpenError> for CreateJobError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Head(error) => Self::Head(error),
            OpenError::Packing(error) => Self::Packing(error),
            OpenError::Packed(error) => Self::Packed(error),
            OpenError::Params(ParamsError { field, message }) => Self::Field(InvalidField { field, message }),
            OpenError::Port(error) => Self::Port(error),
        }
    }
}

impl From<CreateError> for CreateJobError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Full(full) => Self::Full(full),
            CreateError::KeyReused => Self::KeyReused,
            CreateError::Port(error) => Self::Port(error),
        }
    }
}
