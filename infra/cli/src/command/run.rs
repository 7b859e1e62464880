//! `rowmill run`: uploads a file, runs a job on it and follows the job to its end.

use std::path::PathBuf;
use std::process::ExitCode;

use rowmill_api::ids::FileGuid;
use rowmill_api::request::CreateJobRequest;
use serde_json::{Map, Value};

use super::CommandError;
use super::connection::Connection;
use super::lifecycle::{JobRun, LifecycleArgs, Stage};
use super::limits::ToleranceArgs;
use super::params::ParamArgs;
use crate::download::Folder;
use crate::follow::Reporter;
use crate::upload::{RememberedUploads, SourceFile, store};

/// The longest name of a file that goes into the metadata of its job, in bytes.
const NAME_MAX_BYTES: usize = 200;

/// Uploads a file, runs a job on it and shows its progress
///
/// Exit codes: 0 all items succeeded, 3 some items failed, 1 the job failed or could not be followed, 2 wrong usage,
/// 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The file to process, or the guid of an upload
    #[arg(value_name = "FILE|GUID")]
    pub file: PathBuf,
    /// The job type: import, validate, transform or your own
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: String,
    /// Parameters of the job type.
    #[command(flatten)]
    pub params: ParamArgs,
    /// How many failures are tolerated.
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
    /// Fetch the results of the ended job into this folder, which is created if missing
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Replace existing files in that folder
    #[arg(long, requires = "results")]
    pub force: bool,
    /// How the job is run.
    #[command(flatten)]
    pub lifecycle: LifecycleArgs,
    /// Print progress as JSON lines; the last one is the job
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// See [`CommandError`]. The message says whether a job was created.
pub async fn execute(args: RunArgs) -> Result<ExitCode, CommandError> {
    // Wrong arguments are found before anything is started or sent.
    let params = args.params.to_json()?;
    let fallback_type = args.params.format.map(|format| format.content_type());
    let source = match args.file.to_str().and_then(|text| text.parse().ok()) {
        Some(file_guid) if !args.file.exists() => Source::Upload(file_guid),
        _ => Source::File(SourceFile::open(&args.file, fallback_type).await?),
    };
    args.lifecycle.carry_out(async |connection, stage| run(&args, &source, params, connection, stage).await).await
}

/// What a job reads.
enum Source {
    /// A file, which is stored first.
    File(SourceFile),
    /// A file that is stored already.
    Upload(FileGuid),
}

impl Source {
    /// The name of the file, by which the page lists the job. An upload by its guid has its own name.
    fn metadata(&self) -> Option<Map<String, Value>> {
        match self {
            Self::File(file) if file.name.len() <= NAME_MAX_BYTES => {
                Some(Map::from_iter([("fileName".to_owned(), Value::from(file.name.clone()))]))
            }
            Self::File(_) | Self::Upload(_) => None,
        }
    }
}

async fn run(
    args: &RunArgs,
    source: &Source,
    params: Map<String, Value>,
    connection: &Connection,
    stage: &Stage,
) -> Result<ExitCode, CommandError> {
    let mut reporter = Reporter::new(args.json);
    let file_guid = match source {
        Source::Upload(file_guid) => *file_guid,
        Source::File(file) => {
            let report = reporter.upload(file);
            let remembered = RememberedUploads::of_user();
            store(&connection.api, file, remembered.as_ref(), &report.progress).await?.upload.file_guid
        }
    };
    let new_job = CreateJobRequest {
        job_type: args.job_type.clone(),
        file_guid: Some(file_guid),
        params,
        deadline_seconds: args.lifecycle.deadline.seconds(),
        tolerance: args.tolerance.to_tolerance(),
        max_concurrency: args.lifecycle.concurrency.max_concurrency,
        metadata: source.metadata(),
    };
    let job_run = JobRun { connection, patience: &args.lifecycle.patience, json: args.json, stage };
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
