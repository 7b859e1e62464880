//! `rowmill run`: a file from here to finished work, watched all along.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Map, Value};

use super::connection::{Connection, TargetArgs};
use super::lifecycle::{JobRun, Stage, carry_out};
use super::limits::{ConcurrencyArgs, DeadlineArgs, ToleranceArgs};
use super::params::ParamArgs;
use super::{CommandError, PatienceArgs};
use crate::api::NewJob;
use crate::download::Folder;
use crate::follow::Reporter;
use crate::upload::{SourceFile, store};

/// Uploads a file, runs a job on it and shows its progress
///
/// Exit codes: 0 all items succeeded, 3 some items failed, 1 the job failed or could not be followed, 2 wrong usage,
/// 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The file to process
    pub file: PathBuf,
    /// What to do with each item: import, validate, transform or a type of your own
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: String,
    /// Parameters of the job type.
    #[command(flatten)]
    pub params: ParamArgs,
    /// When to end it.
    #[command(flatten)]
    pub deadline: DeadlineArgs,
    /// How many failures it bears.
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
    /// How much of it is done at a time.
    #[command(flatten)]
    pub concurrency: ConcurrencyArgs,
    /// Fetch the job's results into this folder when it has ended, created if it is not there
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Replace files of the same name there
    #[arg(long, requires = "results")]
    pub force: bool,
    /// Where the API is.
    #[command(flatten)]
    pub target: TargetArgs,
    /// How long to bear silence.
    #[command(flatten)]
    pub patience: PatienceArgs,
    /// Print progress as JSON lines, the final job as the last one
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// See [`CommandError`]; whether a job was created is part of the message.
pub async fn execute(args: RunArgs) -> Result<ExitCode, CommandError> {
    // Whatever is wrong with the arguments shows before anything is started or sent.
    let params = args.params.to_json()?;
    let fallback_type = args.params.format.map(|format| format.content_type());
    let file = SourceFile::open(&args.file, fallback_type).await?;
    carry_out(&args.target, async |connection, stage| run(&args, &file, params, connection, stage).await).await
}

async fn run(
    args: &RunArgs,
    file: &SourceFile,
    params: Map<String, Value>,
    connection: &Connection,
    stage: &Stage,
) -> Result<ExitCode, CommandError> {
    let mut reporter = Reporter::new(args.json);
    let report = reporter.upload(file);
    let stored = store(&connection.api, file, &report.progress).await?;
    drop(report);
    let new_job = NewJob {
        job_type: args.job_type.clone(),
        file_guid: Some(stored.upload.file_guid),
        params,
        deadline_seconds: args.deadline.seconds(),
        tolerance: args.tolerance.to_tolerance(),
        max_concurrency: args.concurrency.max_concurrency,
    };
    let job_run = JobRun { connection, patience: &args.patience, json: args.json, stage };
    let job = job_run.create_and_follow(&new_job, &mut reporter).await?;
    let fetched = match &args.results {
        Some(path) => {
            let folder = Folder { path: path.clone(), replace: args.force };
            Some(job_run.fetch(&job, &[], &folder, &reporter).await)
        }
        None => None,
    };
    job_run.conclude(&job, fetched).await
}
