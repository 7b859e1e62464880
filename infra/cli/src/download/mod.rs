//! Downloads a job's results by presigned links. Resumes broken transfers, verifies checksums, and gives a file its
//! name only when it is complete.

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
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("the API returned `{}`, which is not a valid file name; nothing was fetched", escape_controls(.0))]
    Nameless(String),
    #[error("two results have the file name `{}`; fetch them one at a time with --only", .0.display())]
    Twice(PathBuf),
    #[error("`{}` exists already: choose another folder, or use --force to replace it", .0.display())]
    Exists(PathBuf),
    #[error("`{}` is a folder, a result needs that name: choose another folder", .0.display())]
    FolderInTheWay(PathBuf),
    /// The file or its folder cannot be written.
    #[error("cannot write `{}`: {source}", .path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the storage refused to give out `{name}`: {reason} (HTTP {status})")]
    Refused { name: String, status: u16, reason: String },
    /// The connection to the storage failed or broke.
    #[error("cannot fetch `{name}` from the storage at {origin}: {}", crate::terminal::innermost(.source))]
    Unreachable {
        name: String,
        /// Scheme, host and port.
        origin: String,
        /// The transport's error, without the signed address.
        #[source]
        source: reqwest::Error,
    },
    #[error("the download of `{name}` made no progress for {} s and was aborted", .limit.as_secs())]
    Stalled { name: String, limit: Duration },
    #[error("the storage sent only {received} of the {expected} bytes of `{name}`; try again")]
    CutShort { name: String, received: u64, expected: u64 },
    /// The content is not that of the job's result.
    #[error("the {what} of `{name}` does not match the job's results; nothing was kept, try again")]
    Mismatch {
        name: String,
        /// Length or checksum.
        what: &'static str,
    },
    /// The job was redriven in the meantime.
    #[error("the job's results changed while `{0}` was being fetched; try again")]
    Changed(String),
    /// The API's description of a result is invalid.
    #[error("the API's description of `{name}` is invalid: {reason}")]
    Instructions { name: String, reason: &'static str },
}

#[cfg(test)]
mod tests;
