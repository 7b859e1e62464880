//! Fetches a job's results by their presigned links: goes on where a connection broke, checks what came, and puts a file
//! in its place only when it is whole.

mod folder;
mod incoming;
mod source;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::api::ApiError;
use crate::terminal::escape_controls;

pub use folder::{Folder, Place};
pub use source::ResultSource;

/// Why a result could not be fetched. There is no file under its final name then, unless there was one before.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The API did not say where the results are.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The API's name for a file is none.
    #[error("the API calls a result `{}`, which is no file name; nothing was fetched", escape_controls(.0))]
    Nameless(String),
    /// Two results would become the same file.
    #[error("two results would both become `{}`; fetch them one at a time with --only", .0.display())]
    Twice(PathBuf),
    /// There is a file of that name.
    #[error("`{}` exists already: give another folder, or --force to replace it", .0.display())]
    Exists(PathBuf),
    /// There is a folder of that name.
    #[error("`{}` is a folder, so no result can take its name: give another folder", .0.display())]
    FolderInTheWay(PathBuf),
    /// The file or its folder cannot be written.
    #[error("cannot write `{}`: {source}", .path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// The storage does not give it out.
    #[error("the storage refused to give out `{name}`: {reason} (HTTP {status})")]
    Refused {
        /// The file.
        name: String,
        /// The HTTP status.
        status: u16,
        /// The storage's words.
        reason: String,
    },
    /// The connection to the storage failed or broke.
    #[error("cannot fetch `{name}` from the storage at {origin}: {}", crate::api::innermost(.source))]
    Unreachable {
        /// The file.
        name: String,
        /// Scheme, host and port.
        origin: String,
        /// The transport's error, without the signed address.
        #[source]
        source: reqwest::Error,
    },
    /// No byte came in for a while.
    #[error("`{name}` stood still for {} s and was given up", .limit.as_secs())]
    Stalled {
        /// The file.
        name: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The storage ended before the file did.
    #[error("the storage gave only {received} of the {expected} bytes of `{name}`; try again")]
    CutShort {
        /// The file.
        name: String,
        /// Bytes that came.
        received: u64,
        /// Bytes that were promised.
        expected: u64,
    },
    /// What came is not what the job composed.
    #[error("what came for `{name}` has not the {what} that the job's results name; nothing of it was kept, try again")]
    Mismatch {
        /// The file.
        name: String,
        /// Length or checksum.
        what: &'static str,
    },
    /// The job was redriven in the meantime.
    #[error("the job's results changed while `{0}` was being fetched; try again")]
    Changed(String),
    /// The API's description of a result makes no sense.
    #[error("the API's description of `{name}` cannot be followed: {reason}")]
    Instructions {
        /// The file.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

#[cfg(test)]
mod tests;
