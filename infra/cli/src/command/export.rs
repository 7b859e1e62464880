//! `rowmill export`: the records of a dataset, as a file here.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Map, Value};

use super::connection::{Connection, TargetArgs};
use super::lifecycle::{JobRun, Stage, carry_out};
use super::limits::{ConcurrencyArgs, DeadlineArgs};
use super::params::{TextFormat, read_json};
use super::results::{OutArgs, ResultKind};
use super::{CommandError, PatienceArgs};
use crate::api::{JobStatus, NewJob};
use crate::follow::Reporter;

/// The job type that reads a dataset.
const EXPORT: &str = "export";

/// Writes the records of a dataset to a file
///
/// Exit codes: as of `rowmill run`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The dataset to export
    pub dataset: String,
    /// Columns to write, in this order [default: all]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// File with a JSON Schema: only records that fulfil it are written
    #[arg(long, value_name = "FILE")]
    pub filter: Option<PathBuf>,
    /// How the file is to be written
    #[arg(long, value_enum)]
    pub format: Option<TextFormat>,
    /// Compress the file with gzip
    #[arg(long)]
    pub gzip: bool,
    /// Where the file goes.
    #[command(flatten)]
    pub out: OutArgs,
    /// When to end the job.
    #[command(flatten)]
    pub deadline: DeadlineArgs,
    /// How much of it is done at a time.
    #[command(flatten)]
    pub concurrency: ConcurrencyArgs,
    /// Where the API is.
    #[command(flatten)]
    pub target: TargetArgs,
    /// How long to bear silence.
    #[command(flatten)]
    pub patience: PatienceArgs,
    /// Print progress as JSON lines, what was written and then the final job as the last ones
    #[arg(long)]
    pub json: bool,
}

impl ExportArgs {
    /// The `params` member of the job.
    fn params(&self) -> Result<Map<String, Value>, CommandError> {
        let mut params = Map::from_iter([("dataset".to_owned(), self.dataset.as_str().into())]);
        if let Some(format) = self.format {
            params.insert("format".into(), format.word().into());
        }
        if !self.columns.is_empty() {
            params.insert("columns".into(), self.columns.clone().into());
        }
        if let Some(path) = &self.filter {
            params.insert("filter".into(), read_json(path)?);
        }
        if self.gzip {
            params.insert("compress".into(), "gzip".into());
        }
        Ok(params)
    }
}

/// Runs the command.
///
/// # Errors
///
/// See [`CommandError`]; whether a job was created is part of the message.
pub async fn execute(args: ExportArgs) -> Result<ExitCode, CommandError> {
    let new_job = NewJob {
        job_type: EXPORT.to_owned(),
        params: args.params()?,
        deadline_seconds: args.deadline.seconds(),
        max_concurrency: args.concurrency.max_concurrency,
        ..NewJob::default()
    };
    carry_out(&args.target, async |connection, stage| export(&args, &new_job, connection, stage).await).await
}

async fn export(
    args: &ExportArgs,
    new_job: &NewJob,
    connection: &Connection,
    stage: &Stage,
) -> Result<ExitCode, CommandError> {
    let folder = args.out.folder();
    let job_run = JobRun { connection, patience: &args.patience, json: args.json, stage };
    let mut reporter = Reporter::new(args.json);
    let job = job_run.create_and_follow(new_job, &mut reporter).await?;
    let fetched = match job.status {
        // Half of a dataset is not what was asked for; `rowmill results` gives it to whoever wants it all the same.
        JobStatus::Completed => Some(job_run.fetch(&job, &[ResultKind::Output], &folder, &reporter).await),
        _ => None,
    };
    job_run.conclude(&job, fetched).await
}
