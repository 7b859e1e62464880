//! `rowmill export`: writes the records of a dataset to a local file.

use std::path::PathBuf;
use std::process::ExitCode;

use rowmill_api::request::CreateJobRequest;
use rowmill_core::model::job::states::Status;
use serde_json::{Map, Value};

use super::connection::Connection;
use super::lifecycle::{JobRun, LifecycleArgs, Stage};
use super::params::{TextFormat, read_json};
use super::results::{OutArgs, ResultKind, fetch};
use super::{CommandError, word_of};
use crate::follow::Reporter;

/// The job type that reads a dataset.
const EXPORT: &str = "export";

/// Writes the records of a dataset to a file
///
/// Exit codes: as for `rowmill run`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The dataset to export
    pub dataset: String,
    /// Columns to write, in this order, separated by commas [default: all]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// File with a JSON Schema. Only records that are valid against it are written
    #[arg(long, value_name = "FILE")]
    pub filter: Option<PathBuf>,
    /// Format of the file
    #[arg(long, value_enum)]
    pub format: Option<TextFormat>,
    /// Compress the file with gzip
    #[arg(long)]
    pub gzip: bool,
    #[command(flatten)]
    pub out: OutArgs,
    #[command(flatten)]
    pub lifecycle: LifecycleArgs,
    /// Print progress as JSON lines; the last two are the written files and the job
    #[arg(long)]
    pub json: bool,
}

impl ExportArgs {
    fn params(&self) -> Result<Map<String, Value>, CommandError> {
        let mut params = Map::from_iter([("dataset".to_owned(), self.dataset.as_str().into())]);
        if let Some(format) = self.format {
            params.insert("format".into(), word_of(format).into());
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

/// An error says whether a job was created.
pub async fn execute(args: ExportArgs) -> Result<ExitCode, CommandError> {
    let new_job = CreateJobRequest {
        job_type: EXPORT.to_owned(),
        params: args.params()?,
        deadline_seconds: args.lifecycle.deadline.seconds(),
        start_within_seconds: args.lifecycle.spans.start_within_seconds(),
        keep_seconds: args.lifecycle.spans.keep_seconds(),
        max_concurrency: args.lifecycle.workers.max_concurrency,
        priority: args.lifecycle.workers.priority,
        ..CreateJobRequest::default()
    };
    args.lifecycle.target.carry_out(async |connection, stage| export(&args, &new_job, connection, stage).await).await
}

async fn export(
    args: &ExportArgs,
    new_job: &CreateJobRequest,
    connection: &Connection,
    stage: &Stage,
) -> Result<ExitCode, CommandError> {
    let folder = args.out.folder();
    let job_run = JobRun { connection, patience: &args.lifecycle.patience, json: args.json, stage };
    let mut reporter = Reporter::new(args.json);
    let job = job_run.create_and_follow(new_job, &mut reporter).await?;
    let fetched = match job.status {
        // A failed export leaves a part of the dataset. It is not fetched here; `rowmill results` can.
        Status::Completed => Some(fetch(connection, job.job_guid, &[ResultKind::Output], &folder, &reporter).await),
        _ => None,
    };
    job_run.conclude(&job, fetched).await
}
