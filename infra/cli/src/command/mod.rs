//! The client's commands: `run`, `export`, `results`, `upload`, `jobs`, `job`, `cancel`, `redrive`, `dead-letters` and
//! `bench`.
//!
//! Each has its arguments and an `execute` that gives the exit code:
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done; for a job that was followed: every item succeeded |
//! | 1 | the job failed or was cancelled as a whole, or this command met an error |
//! | 2 | wrong usage |
//! | 3 | the job completed, some items failed |
//! | 130 | interrupted; the job goes on unless its local stack was this command's own |

pub mod bench;
pub mod cancel;
pub mod dead_letters;
pub mod export;
pub mod job;
pub mod jobs;
pub mod redrive;
pub mod results;
pub mod run;
pub mod upload;

mod connection;
pub(crate) mod interrupt;
mod lifecycle;
mod limits;
mod params;

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use jiff::SignedDuration;

use crate::api::{ApiError, Job, innermost};
use crate::bench::BenchError;
use crate::download::DownloadError;
use crate::follow::{FollowError, Patience, failed_items_table, summary};
use crate::stack::StackError;
use crate::terminal;
use crate::upload::UploadError;

use connection::Connection;

/// Failed rows shown after a job.
const FAILED_ROWS_SHOWN: usize = 10;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The arguments do not make sense together; found after clap was content.
    #[error("{0}")]
    Usage(String),
    /// A file named in the arguments cannot be used.
    #[error("cannot use `{}`: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        reason: Box<dyn Error + Send + Sync>,
    },
    /// A call of the API failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The file could not be stored.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// A result could not be fetched.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// A job that has not ended has no results.
    #[error("{source}\nFollow it to its end: {look_again}")]
    NotEnded {
        /// The API's refusal.
        #[source]
        source: ApiError,
        /// The command that follows the job.
        look_again: String,
    },
    /// The job was not followed to its end.
    #[error("{source}\nLook at it again: {look_again}")]
    Follow {
        /// Why not.
        #[source]
        source: FollowError,
        /// The command that shows the job.
        look_again: String,
    },
    /// The local stack could not be used.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A benchmark has no result.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// Standard output takes nothing: the disk it goes to is full, say.
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

    /// The error with its causes, as far as they add something.
    pub fn explain(&self) -> String {
        explain(self)
    }
}

/// An error with its causes, as far as they add something.
pub(crate) fn explain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    // An error that names its innermost cause has said it all; what lies between is plumbing.
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

/// How long to wait for a silent API or a job that does not move.
#[derive(Debug, Clone, clap::Args)]
pub struct PatienceArgs {
    /// Give up when the API has not answered for this long
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_span)]
    pub answer_timeout: Duration,
    /// Give up when the job has not moved for this long
    #[arg(long, value_name = "SPAN", default_value = "20m", value_parser = parse_span)]
    pub stall_timeout: Duration,
}

impl PatienceArgs {
    fn patience(&self) -> Patience {
        Patience { unanswered: self.answer_timeout, unchanged: self.stall_timeout }
    }
}

/// Reads `90s`, `30m`, `4h`, `1h30m`: a span of time of at least a second.
fn parse_span(text: &str) -> Result<Duration, String> {
    let span: SignedDuration = text.parse().map_err(|_| "expected a span such as 90s, 30m or 4h")?;
    match Duration::try_from(span) {
        Ok(span) if span.as_secs() > 0 => Ok(span),
        _ => Err("expected at least one second".to_owned()),
    }
}

/// Writes a command's result.
fn print(text: &str) -> Result<(), CommandError> {
    terminal::print(text).map_err(CommandError::Output)
}

/// Writes a line of JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), CommandError> {
    let line = serde_json::to_string(value).expect("the API's types are JSON");
    print(&(line + "\n"))
}

/// Shows a job: as a line of JSON, or as counts, the first failed rows and how to get all of them.
async fn show_job(connection: &Connection, job: &Job, json: bool) -> Result<(), CommandError> {
    if json {
        return print_json(job);
    }
    show_counts(connection, job).await?;
    tell_of_failed_rows(connection, job)
}

/// Shows a job's counts and its first failed rows.
async fn show_counts(connection: &Connection, job: &Job) -> Result<(), CommandError> {
    print(&summary(job))?;
    if job.items_failed == 0 {
        return Ok(());
    }
    match connection.api.failed_items(&job.job_guid, FAILED_ROWS_SHOWN).await {
        Ok(items) if items.is_empty() => Ok(()),
        Ok(items) => {
            let table = failed_items_table(&items, job.items_failed, terminal::width());
            print(&format!("\n{table}"))
        }
        // The job's own result stands, with or without its failed rows.
        Err(error) => {
            eprintln!("The failed rows cannot be shown: {error}");
            Ok(())
        }
    }
}

/// Says how to get the failed rows of a job that has ended, if there are any.
fn tell_of_failed_rows(connection: &Connection, job: &Job) -> Result<(), CommandError> {
    match job.status.is_terminal() && job.items_failed > 0 {
        true => print(&format!("\nGet the failed rows as a file: {}\n", connection.fetch_results(&job.job_guid))),
        false => Ok(()),
    }
}

/// A job's guid, as an argument. It becomes part of a path, so nothing else may pass for one.
fn job_guid(text: &str) -> Result<String, uuid::Error> {
    text.parse::<uuid::Uuid>().map(|guid| guid.hyphenated().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let seconds = |text| parse_span(text).map(|span| span.as_secs());
        assert_eq!(seconds("4h"), Ok(14_400));
        assert_eq!(seconds("1h30m"), Ok(5_400));
        assert_eq!(seconds("90s"), Ok(90));
        for wrong in ["", "4", "-4h", "0s", "10ms", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn causes_are_told_once() {
        let io = io::Error::other("disk on fire");
        assert_eq!(CommandError::Output(io).explain(), "cannot write the result: disk on fire");
        let source = io::Error::other("no entry");
        let upload = UploadError::Unreadable { path: "a.csv".into(), source };
        assert_eq!(CommandError::from(upload).explain(), "cannot read `a.csv`: no entry");
    }
}
