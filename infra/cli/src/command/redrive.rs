//! `rowmill redrive`: processes the failed items of an ended job again.

use std::path::PathBuf;
use std::process::ExitCode;

use rowmill_api::request::RedriveRequest;
use rowmill_core::model::causes::{RowRange, Selection};
use rowmill_core::model::ids::FileGuid;

use super::connection::{Connection, JobRefArgs};
use super::job::WatchArgs;
use super::limits::DeadlineArgs;
use super::{CommandError, print_result};
use crate::follow::{Details, Reporter, summary};
use crate::upload::{SourceFile, store};

/// Processes the failed items of an ended job again
///
/// With --corrected, the rows of that file replace the failed rows with the same row numbers. Failed rows that are not
/// in the file stay failed.
///
/// Exit codes with --watch: as for `rowmill run`. Without: 0 if the job was started again.
#[derive(Debug, clap::Args)]
pub struct RedriveArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    /// File with corrected rows, in the format of the job's failed-rows file
    #[arg(long, value_name = "FILE")]
    pub corrected: Option<PathBuf>,
    /// Only failed rows with this code; several for any of them
    #[arg(long = "code", value_name = "CODE")]
    pub codes: Vec<String>,
    /// Only failed rows of which this column is wrong; several for any of them
    #[arg(long = "column", value_name = "COLUMN")]
    pub columns: Vec<String>,
    /// Only these failed rows: numbers and ranges such as 7,12-90
    #[arg(long, value_name = "ROWS", value_delimiter = ',', value_parser = row_range)]
    pub rows: Vec<RowRange>,
    #[command(flatten)]
    pub deadline: DeadlineArgs,
    #[command(flatten)]
    pub watch: WatchArgs,
}

/// After an error without `--watch`, the job has not been started again.
pub async fn execute(args: RedriveArgs) -> Result<ExitCode, CommandError> {
    // A missing file is found before anything is sent.
    let corrected = match &args.corrected {
        Some(path) => Some(SourceFile::open(path, None).await?),
        None => None,
    };
    let connection = args.job.api.connect().await?;
    let file_guid = match &corrected {
        Some(file) => Some(upload(&connection, file, args.watch.json).await?),
        None => None,
    };
    let (codes, columns, rows) = (args.codes, args.columns, args.rows);
    let selection = Selection { codes, columns, rows, causes: Vec::new() };
    let select = (!selection.is_all()).then_some(selection);
    let redrive = RedriveRequest { file_guid, select, deadline_seconds: args.deadline.seconds() };
    let job = connection.api.redrive_job(args.job.job_guid, &redrive).await?;
    if args.watch.watch {
        return args.watch.follow(&connection, job).await;
    }
    print_result(args.watch.json, &job, || summary(&job, &Details::default()))?;
    if !args.watch.json {
        eprintln!(
            "The failed items are processed again.\nLook at it again: {}",
            connection.watch_command(job.job_guid)
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn row_range(text: &str) -> Result<RowRange, String> {
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    let range = match text.split_once('-') {
        Some((from, to)) => number(from).zip(number(to)).map(|(from, to)| RowRange { from, to: Some(to) }),
        None => number(text).map(|from| RowRange { from, to: None }),
    };
    let is_right = |range: &RowRange| range.to.is_none_or(|to| range.from <= to);
    range.filter(is_right).ok_or_else(|| "must be a row number, or two with `-` between them".to_owned())
}

async fn upload(connection: &Connection, file: &SourceFile, json: bool) -> Result<FileGuid, CommandError> {
    let report = Reporter::new(json).upload(file);
    let stored = store(&connection.api, file, None, &report.progress).await?;
    Ok(stored.upload.file_guid)
}
