//! The errors of the use case.

use rowmill_core::model::ids::FileGuid;
use rowmill_core::model::outstanding::{OutstandingFull, OutstandingLimits};
use rowmill_core::model::upload::FetchFailure;
use rowmill_core::ports::{OutstandingError, PortError};

/// Why a request for an upload fails. The texts are the problem details that the client reads.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    #[error("`{field}` {message}")]
    Field {
        field: &'static str,
        /// The fault and its remedy: the rest of the sentence that begins with the field's name.
        message: String,
    },
    /// The file is too big for this kind of upload, or for any.
    #[error("The file has {size} bytes, more than the maximum of {limit}. {advice}")]
    TooLarge { size: u64, limit: u64, advice: &'static str },
    /// The owner has announced too much and not completed it.
    #[error(
        "You have {} announced uploads with {} bytes together that are not complete. At most {} uploads with {} bytes are \
         allowed. Complete some of them, or announce this file again after {}.",
        .full.uploads, .full.bytes, .limits.uploads, .limits.bytes, .full.free_at
    )]
    TooMany {
        /// The outstanding uploads, and until when they count.
        full: OutstandingFull,
        limits: OutstandingLimits,
    },
    /// The caller has no such upload.
    #[error("There is no upload {0}, or it has expired. Upload the file again.")]
    Unknown(FileGuid),
    /// It was aborted, and its row is gone or about to go.
    #[error("Upload {0} was aborted, and its bytes are deleted. Upload the file again.")]
    Aborted(FileGuid),
    #[error("Upload {file} is incomplete: {stored} of {announced} bytes are stored. Send the rest first.")]
    Incomplete { file: FileGuid, stored: u64, announced: u64 },
    /// The stored length is not the announced one.
    #[error("Upload {file} has {stored} bytes, but {announced} were announced. Upload the file again.")]
    OtherSize { file: FileGuid, stored: u64, announced: u64 },
    #[error("Upload {0} is ready: all its bytes are stored. Create jobs with it, or leave it; it expires by itself.")]
    Ready(FileGuid),
    #[error("Upload {0} is fetched by Rowmill, so there is nothing to send. Look at it until it is `ready`.")]
    Fetching(FileGuid),
    #[error("Upload {0} could not be fetched. {detail}", detail = .1.detail)]
    Failed(FileGuid, FetchFailure),
    #[error(transparent)]
    Port(#[from] PortError),
}

impl UploadError {
    /// The error of counting an upload as outstanding under these limits.
    pub fn of_outstanding(error: OutstandingError, limits: OutstandingLimits) -> Self {
        match error {
            OutstandingError::Full(full) => Self::TooMany { full, limits },
            OutstandingError::Port(error) => error.into(),
        }
    }
}
