//! The commands, a module each: its arguments, and an `execute` that returns the exit code.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | success; for a followed job: every item succeeded |
//! | 1 | the job failed or was cancelled as a whole, or this command failed |
//! | 2 | wrong usage |
//! | 3 | the job completed, but some items failed; for `work`: the command failed at some task |
//! | 130 | interrupted; the job goes on, unless this command started its local stack |

pub mod again;
pub mod audit;
pub mod bench;
pub mod block;
pub mod control;
pub mod datasets;
pub mod dead_letters;
pub mod delete;
pub mod export;
pub mod forget;
pub mod gateway;
pub mod job;
pub mod jobs;
pub mod login;
pub mod open;
pub mod preview;
pub mod prune;
pub mod redrive;
pub mod results;
pub mod retune;
pub mod run;
pub mod top;
pub mod undo;
pub mod upload;
pub mod webhook_key;
pub mod why;
pub mod work;
pub mod workers;

mod connection;
mod deployed;
pub(crate) mod interrupt;
mod lifecycle;
mod limits;
mod operator;
mod params;

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::SpanRelativeTo;
use rowmill_core::job_types::{IMPORT, PRUNE, UNDO};
use rowmill_core::words::Word;
use serde_json::Value;

use crate::api::{ApiError, Job};
use crate::aws::CallFailed;
use crate::bench::BenchError;
use crate::deploy::DeployError;
use crate::download::DownloadError;
use crate::follow::{
    Details, FollowError, Patience, causes_table, changes_text, failed_items_table, file_name, summary,
};
use crate::login::LoginError;
use crate::package::PackageError;
use crate::stack::StackError;
use crate::terminal::{self, innermost};
use crate::upload::UploadError;
use crate::work::WorkError;
use connection::Connection;

const FAILED_ROWS_SHOWN: usize = 10;

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

/// The time to wait for an API that does not answer, or for a job without progress.
#[derive(Debug, Clone, clap::Args)]
pub struct PatienceArgs {
    /// Give up when the API has not answered for this long
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_span)]
    pub answer_timeout: Duration,
    /// Give up when the job has made no progress for this long
    #[arg(long, value_name = "SPAN", default_value = "20m", value_parser = parse_span)]
    pub stall_timeout: Duration,
}

impl PatienceArgs {
    fn patience(&self) -> Patience {
        Patience { unanswered: self.answer_timeout, unchanged: self.stall_timeout, listens: true }
    }
}

/// Parses a duration of at least one second: `90s`, `30m`, `4h`, `1h30m`, `7d`. A day has 24 hours.
fn parse_span(text: &str) -> Result<Duration, String> {
    let expected = |_| "expected a duration such as 90s, 30m, 4h or 7d";
    let span: jiff::Span = text.parse().map_err(expected)?;
    match Duration::try_from(span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(expected)?) {
        Ok(span) if span.as_secs() > 0 => Ok(span),
        _ => Err("expected at least one second".to_owned()),
    }
}

/// Parses one of these words of the API.
fn word_parser<W, const N: usize>(words: [W; N]) -> impl TypedValueParser<Value = W>
where
    W: Word + Send + Sync + 'static,
{
    PossibleValuesParser::new(words.map(W::as_str))
        .map(move |word| words.into_iter().find(|known| known.as_str() == word).expect("one of the possible values"))
}

/// The name of a value on the command line, which the API uses too.
fn word_of(value: impl clap::ValueEnum) -> String {
    value.to_possible_value().expect("no value is hidden").get_name().to_owned()
}

pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    terminal::print(text).map_err(CommandError::Output)
}

fn print_json(value: &impl serde::Serialize) -> Result<(), CommandError> {
    let line = serde_json::to_string(value).expect("the API's types are JSON");
    print(&(line + "\n"))
}

/// Writes a command's result as a line of JSON, or as text.
pub(crate) fn print_result(
    json: bool,
    value: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), CommandError> {
    if json { print_json(value) } else { print(&text()) }
}

/// The first `limit` entries of a list that comes in pages of at most `page_max`. A page may be short or empty although
/// more follow.
async fn first_of<T, C: Clone + PartialEq>(
    limit: usize,
    page_max: usize,
    page: impl AsyncFn(usize, Option<C>) -> Result<(Vec<T>, Option<C>), ApiError>,
) -> Result<Vec<T>, CommandError> {
    let (mut entries, mut after) = (Vec::new(), None);
    while entries.len() < limit {
        let (more, next) = page(page_max.min(limit - entries.len()), after.clone()).await?;
        entries.extend(more);
        match next {
            Some(_) if next != after => after = next,
            _ => break,
        }
    }
    entries.truncate(limit);
    Ok(entries)
}

/// Writes a list as a line of JSON for each entry, or as a table. `none` tells a person that it is empty.
fn print_list<T: serde::Serialize>(
    json: bool,
    list: &[T],
    none: &str,
    table: impl FnOnce() -> String,
) -> Result<(), CommandError> {
    match list {
        _ if json => list.iter().try_for_each(print_json)?,
        [] => eprintln!("{none}"),
        _ => print(&table())?,
    }
    Ok(())
}

/// Shows a job: as a line of JSON, or as counts, the first failed rows, and the command that fetches all of them.
async fn show_job(connection: &Connection, job: &Job, json: bool) -> Result<(), CommandError> {
    if json {
        return print_json(job);
    }
    print_counts(connection, job).await?;
    print_hints(connection, job, false)
}

/// Shows a job's counts, what it would change if it is a dry run, or has reversed if it is an undo, and its first failed
/// rows.
async fn print_counts(connection: &Connection, job: &Job) -> Result<(), CommandError> {
    let uploaded_as = match (file_name(job), job.file_guid) {
        // The upload may have expired. The job is shown without a name then.
        (None, Some(file_guid)) => {
            connection.api.upload(file_guid).await.ok().and_then(|upload| upload.file_name.clone())
        }
        _ => None,
    };
    let params = job.field("params").and_then(Value::as_object);
    print(&summary(job, &Details { uploaded_as: uploaded_as.as_deref(), params }))?;
    let tells_more = job.items_failed > 0 || matches!(job.job_type.as_str(), IMPORT | PRUNE | UNDO);
    // Without results the failed rows are all that there is.
    let results = match job.status.is_terminal() && tells_more {
        true => connection.api.results(job.job_guid).await.ok(),
        false => None,
    };
    if let Some(changes) = results.as_ref().and_then(|results| results.changes.as_ref()) {
        print(&format!("\n{}", changes_text(changes, &job.job_type)))?;
    }
    if job.items_failed == 0 {
        return Ok(());
    }
    // Of a single cause the failed rows themselves tell.
    if let Some(results) = results.filter(|results| results.causes.len() > 1) {
        let table = causes_table(&results.causes, results.other_causes, terminal::width());
        print(&format!("\n{table}"))?;
    }
    match connection.api.failed_items(job.job_guid, FAILED_ROWS_SHOWN).await {
        Ok(items) if items.is_empty() => Ok(()),
        Ok(items) => {
            let table = failed_items_table(&items, job.items_failed, terminal::width());
            print(&format!("\n{table}"))
        }
        // The job is shown already; its failed rows are only an addition.
        Err(error) => {
            eprintln!("The failed rows cannot be shown: {error}");
            Ok(())
        }
    }
}

/// Prints how to fetch the failed rows of an ended job, if there are any and they are not here yet, and where to see
/// the job.
fn print_hints(connection: &Connection, job: &Job, rows_are_here: bool) -> Result<(), CommandError> {
    let mut hints = Vec::new();
    if job.status.is_terminal() && job.items_failed > 0 && !rows_are_here {
        hints.push(format!("Get the failed rows as a file: {}\n", connection.results_command(job.job_guid)));
    }
    if let Some(page) = connection.job_page(job.job_guid) {
        hints.push(format!("See the job in a browser: {page}\n"));
    }
    match hints.is_empty() {
        true => Ok(()),
        false => print(&format!("\n{}", hints.concat())),
    }
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
        assert_eq!(seconds("1d12h"), Ok(129_600));
        assert_eq!(seconds("3650d"), Ok(315_360_000));
        for wrong in ["1y", "2mo", "", "4", "-4h", "0s", "10ms", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_cause_is_printed_once() {
        let io = io::Error::other("disk on fire");
        assert_eq!(CommandError::Output(io).explain(), "cannot write the result: disk on fire");
        let source = io::Error::other("no entry");
        let upload = UploadError::Unreadable { path: "a.csv".into(), source };
        assert_eq!(CommandError::from(upload).explain(), "cannot read `a.csv`: no entry");
    }
}
