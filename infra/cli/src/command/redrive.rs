//! `rowmill redrive`: processes the failed items of an ended job again.

use std::path::PathBuf;
use std::process::ExitCode;

use rowmill_api::request::RedriveRequest;
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
    let redrive = RedriveRequest { file_guid, deadline_seconds: args.deadline.seconds() };
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

async fn upload(connection: &Connection, file: &SourceFile, json: bool) -> Result<FileGuid, CommandError> {
    let report = Reporter::new(json).upload(file);
    let stored = store(&connection.api, file, None, &report.progress).await?;
    Ok(stored.upload.file_guid)
}
