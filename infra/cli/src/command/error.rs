//! Why a command failed: the text for a person, and the exit code.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::api::ApiError;
use crate::aws::CallFailed;
use crate::bench::BenchError;
use crate::deploy::DeployError;
use crate::download::DownloadError;
use crate::follow::FollowError;
use crate::login::LoginError;
use crate::package::PackageError;
use crate::stack::StackError;
use crate::terminal::innermost;
use crate::upload::UploadError;
use crate::work::WorkError;

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The arguments contradict each other. clap does not detect these cases.
    #[error("{0}")]
    Usage(String),
    /// A file named in the arguments cannot be used.
    #[error("cannot use `{}`: {reason}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        reason: Box<dyn Error + Send + Sync>,
    },
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Upload(#[from] UploadError),
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// A job that has not ended has no results.
    #[error("{source}\nTo follow it to its end: {watch_command}")]
    NotEnded {
        #[source]
        source: ApiError,
        watch_command: String,
    },
    /// The job was not followed to its end.
    #[error("{source}\nLook at it again: {watch_command}")]
    Follow {
        #[source]
        source: FollowError,
        watch_command: String,
    },
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The local stack ended while `rowmill up` was in the foreground.
    #[error("the local stack ended unexpectedly; see {}", .0.display())]
    StackEnded(PathBuf),
    #[error(transparent)]
    Deploy(#[from] DeployError),
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(transparent)]
    Login(#[from] LoginError),
    #[error(transparent)]
    Bench(#[from] BenchError),
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error(transparent)]
    Aws(#[from] CallFailed),
    #[error("cannot serve port {port} of 127.0.0.1: {source}; --port chooses another one, 0 any free one")]
    Port {
        port: u16,
        #[source]
        source: io::Error,
    },
    /// Standard output cannot be written, for example because a disk is full.
    #[error("cannot write the result")]
    Output(#[source] io::Error),
}

impl CommandError {
    /// 2 for wrong usage, else 1.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }

    /// The error with those causes that add information.
    pub fn explain(&self) -> String {
        explain(self)
    }
}

/// An error with those causes that add information.
pub(crate) fn explain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    // If the text names the innermost cause, the causes in between add nothing.
    if text.contains(&innermost(error)) {
        return text;
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_printed_once() {
        let io = io::Error::other("disk on fire");
        assert_eq!(CommandError::Output(io).explain(), "cannot write the result: disk on fire");
        let source = io::Error::other("no entry");
        let upload = UploadError::Unreadable { path: "a.csv".into(), source };
        assert_eq!(CommandError::from(upload).explain(), "cannot read `a.csv`: no entry");
    }
}
