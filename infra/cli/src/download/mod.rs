//! Downloads a job's results by presigned links. Resumes broken transfers, verifies checksums, and gives a file its name
//! only when it is complete.

mod folder;
mod partial_file;
mod source;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::api::ApiError;
use crate::terminal::escape_controls;

pub use folder::{Destination, Folder};
pub use source::ResultSource;

/// Error of a download. The file does not exist under its final name, unless it existed before.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The API did not return the results.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The API returned an invalid file name.
    #[error("the API returned `{}`, which is not a valid file name; nothing was fetched", escape_controls(.0))]
    Nameless(String),
    /// Two results have the same file name.
    #[error("two results have the file name `{}`; fetch them one at a time with --only", .0.display())]
    Twice(PathBuf),
    /// A file with that name exists.
    #[error("`{}` exists already: choose another folder, or use --force to replace it", .0.display())]
    Exists(PathBuf),
    /// A folder with that name exists.
    #[error("`{}` is a folder, a result needs that name: choose another folder", .0.display())]
    FolderInTheWay(PathBuf),
    /// The file or its folder cannot be written.
    #[error("cannot write `{}`: {source}", .path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The storage refused the request.
    #[error("the storage refused to give out `{name}`: {reason} (HTTP {status})")]
    Refused {
        /// The file.
        name: String,
        /// The HTTP status.
        status: u16,
        /// The reason given by the storage.
        reason: String,
    },
    /// The connection to the storage failed or broke.
    #[error("cannot fetch `{name}` from the storage at {origin}: {}", crate::terminal::innermost(.source))]
    Unreachable {
        /// The file.
        name: String,
        /// Scheme, host and port.
        origin: String,
        /// The transport's error, without the signed address.
        #[source]
        source: reqwest::Error,
    },
    /// No byte arrived for too long.
    #[error("the download of `{name}` made no progress for {} s and was aborted", .limit.as_secs())]
    Stalled {
        /// The file.
        name: String,
        /// The timeout.
        limit: Duration,
    },
    /// The answer ended too early.
    #[error("the storage sent only {received} of the {expected} bytes of `{name}`; try again")]
    CutShort {
        /// The file.
        name: String,
        /// Bytes received.
        received: u64,
        /// Bytes expected.
        expected: u64,
    },
    /// The content is not that of the job's result.
    #[error("the {what} of `{name}` does not match the job's results; nothing was kept, try again")]
    Mismatch {
        /// The file.
        name: String,
        /// Length or checksum.
        what: &'static str,
    },
    /// The job was redriven in the meantime.
    #[error("the job's results changed while `{0}` was being fetched; try again")]
    Changed(String),
    /// The API's description of a result is invalid.
    #[error("the API's description of `{name}` is invalid: {reason}")]
    Instructions {
        /// The file.
        name: String,
        /// The reason.
        reason: &'static str,
    },
}

#[cfg(test)]
mod tests;
