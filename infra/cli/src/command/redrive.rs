//! `rowmill redrive`: the failed items of a job that has ended, once more.

use std::path::PathBuf;
use std::process::ExitCode;

use super::connection::{ApiArgs, Connection};
use super::job::watch;
use super::limits::DeadlineArgs;
use super::{CommandError, PatienceArgs, print, print_json};
use crate::api::Redrive;
use crate::follow::{Reporter, summary};
use crate::upload::{SourceFile, store};

/// Processes the failed items of an ended job again
///
/// With --corrected, the rows of that file take the place of the failed ones they name by their row number; failed rows it
/// leaves out keep their failure.
///
/// Exit codes with --watch: as of `rowmill run`. Without: 0 if the job runs again.
#[derive(Debug, clap::Args)]
pub struct RedriveArgs {
    /// The job's guid
    #[arg(value_parser = super::job_guid)]
    pub job_guid: String,
    /// File with the failed rows put right, in the form of the job's failed-rows file
    #[arg(long, value_name = "FILE")]
    pub corrected: Option<PathBuf>,
    /// When to end it.
    #[command(flatten)]
    pub deadline: DeadlineArgs,
    /// Follow the job to its end
    #[arg(long)]
    pub watch: bool,
    /// Where the API is.
    #[command(flatten)]
    pub api: ApiArgs,
    /// How long to bear silence.
    #[command(flatten)]
    pub patience: PatienceArgs,
    /// Print JSON lines, the job as the last one
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// See [`CommandError`]; but for a job that was to be watched, it has not been started again then.
pub async fn execute(args: RedriveArgs) -> Result<ExitCode, CommandError> {
    // A file that is not there is found before anything is sent.
    let corrected = match &args.corrected {
        Some(path) => Some(SourceFile::open(path, None).await?),
        None => None,
    };
    let connection = args.api.connect().await?;
    let file_guid = match &corrected {
        Some(file) => Some(upload(&connection, file, args.json).await?),
        None => None,
    };
    let redrive = Redrive { file_guid, deadline_seconds: args.deadline.seconds() };
    let job = connection.api.redrive_job(&args.job_guid, &redrive).await?;
    if args.watch {
        return watch(&connection, job, &args.patience, args.json).await;
    }
    if args.json {
        print_json(&job)?;
    } else {
        print(&summary(&job))?;
        eprintln!("Its failed items are processed again.\nLook at it again: {}", connection.look_again(&job.job_guid));
    }
    Ok(ExitCode::SUCCESS)
}

async fn upload(connection: &Connection, file: &SourceFile, json: bool) -> Result<String, CommandError> {
    let report = Reporter::new(json).upload(file);
    let stored = store(&connection.api, file, &report.progress).await?;
    Ok(stored.upload.file_guid)
}
