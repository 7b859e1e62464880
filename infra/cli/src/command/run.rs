//! `rowmill run`: a file from here to finished work, watched all along.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use uuid::Uuid;

use super::connection::{Connection, TargetArgs};
use super::interrupt::{self, interrupted};
use super::limits::{DeadlineArgs, ToleranceArgs};
use super::params::ParamArgs;
use super::{CommandError, PatienceArgs, show_job};
use crate::api::NewJob;
use crate::follow::{Reporter, Verdict, follow};
use crate::stack::{self, StackOptions};
use crate::upload::{SourceFile, store};

/// Uploads a file, runs a job on it and shows its progress
///
/// Exit codes: 0 all items succeeded, 3 some items failed, 1 the job failed or could not be followed, 2 wrong usage,
/// 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The file to process
    pub file: PathBuf,
    /// What to do with each item: import, validate or a type of your own
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
    /// Process at most this many chunks of the job at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_concurrency: Option<u32>,
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
    let local = args.target.stack_options()?;
    let started = Started::default();
    let run = async {
        let mut connection = match &local {
            Some(options) => Connection::local(options).await?,
            None => args.target.api.connect().await?,
        };
        let result = run(&args, &file, params, &connection, &started).await;
        // Whatever became of the job, it can still be looked at; only an interrupted command takes its stack along.
        connection.leave_stack_running();
        result
    };
    tokio::select! {
        result = run => result,
        () = interrupted() => {
            // `run` is dropped by now, and with it a stack this command had started.
            tell_interrupted(&started, local.as_ref()).await;
            Ok(interrupt::exit_code())
        }
    }
}

/// How far a run has got.
#[derive(Default)]
struct Started {
    /// The job is being asked for: from now on there may be one.
    asked: AtomicBool,
    /// The command that shows the job again, once its name is known.
    look_again: OnceLock<String>,
}

async fn run(
    args: &RunArgs,
    file: &SourceFile,
    params: Map<String, Value>,
    connection: &Connection,
    started: &Started,
) -> Result<ExitCode, CommandError> {
    let mut reporter = Reporter::new(args.json);
    let report = reporter.upload(file);
    let stored = store(&connection.api, file, &report.progress).await?;
    drop(report);
    let new_job = NewJob {
        job_type: args.job_type.clone(),
        file_guid: stored.upload.file_guid,
        params,
        deadline_seconds: args.deadline.seconds(),
        tolerance: args.tolerance.to_tolerance(),
        max_concurrency: args.max_concurrency,
    };
    started.asked.store(true, Ordering::Relaxed);
    let job = connection.api.create_job(&new_job, Uuid::new_v4()).await?;
    let look_again = started.look_again.get_or_init(|| connection.look_again(&job.job_guid));
    let job = follow(&connection.api, job, &args.patience.patience(), &mut reporter)
        .await
        .map_err(|source| CommandError::Follow { source, look_again: look_again.clone() })?;
    show_job(connection, &job, args.json).await?;
    Ok(Verdict::of(&job).exit_code())
}

/// Says what becomes of the job.
async fn tell_interrupted(started: &Started, local: Option<&StackOptions>) {
    let stopped = match local {
        Some(options) => stack::running(&options.state_dir).await.is_err(),
        None => false,
    };
    match (started.look_again.get(), stopped) {
        (Some(look_again), false) => {
            eprintln!("Interrupted; the job goes on without this command.");
            eprintln!("Look at it again: {look_again}");
        }
        (Some(_), true) => eprintln!("Interrupted; the local stack is stopped, and the job with it."),
        (None, false) if started.asked.load(Ordering::Relaxed) => {
            eprintln!("Interrupted while the job was being created: there may be one, see `rowmill jobs`.");
        }
        (None, false) => eprintln!("Interrupted; no job was created."),
        (None, true) => eprintln!("Interrupted; no job was created, the local stack is stopped."),
    }
}
