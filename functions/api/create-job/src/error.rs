//! The errors of the use case.

use rowmill_core::model::ids::FileGuid;
use rowmill_core::ports::processor::ParamsError;
use rowmill_core::ports::{Full, PortError};
use rowmill_core::text::HeadError;
use rowmill_formats::{DecodeError, FormatError};

use crate::request::InvalidField;

/// Why no job was created. Nothing is written then.
#[derive(Debug, thiserror::Error)]
pub enum CreateJobError {
    /// A field of the request is wrong.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// There is no such job type.
    #[error("there is no job type `{name}`; there are {}", known.join(", "))]
    UnknownJobType {
        /// The name in the request.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The caller has no such upload.
    #[error("there is no upload {0}; it may have expired: upload the file again")]
    UnknownUpload(FileGuid),
    /// The upload has not received all of its bytes.
    #[error("upload {0} is not complete: send its bytes first")]
    UploadIncomplete(FileGuid),
    /// The stored length is not the announced one.
    #[error("upload {file} has {stored} bytes where {announced} were announced: upload the file again")]
    UploadSize {
        /// The upload.
        file: FileGuid,
        /// The announced length, in bytes.
        announced: u64,
        /// The stored length, in bytes.
        stored: u64,
    },
    /// The object was replaced after the upload was complete.
    #[error("upload {0} was replaced after it was complete: upload the file again")]
    UploadChanged(FileGuid),
    /// The text of the file cannot be read in the declared or detected format.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The file is not packed as declared, or in an unknown way.
    #[error(transparent)]
    Packing(#[from] FormatError),
    /// The packed file cannot be decoded.
    #[error(transparent)]
    Packed(#[from] DecodeError),
    /// The job type rejects the params.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// A ceiling is reached.
    #[error("{}", .0.admission.advice())]
    Full(Full),
    /// The idempotency key was used for another request.
    #[error("the Idempotency-Key was used for another request; use a new key for a new job")]
    KeyReused,
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}
