//! The life of a job from its creation to its results, shared by `rowmill run`, `rowmill export` and `rowmill again`.

use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rowmill_api::request::CreateJobRequest;
use serde::Serialize;
use uuid::Uuid;

use super::connection::{Connection, TargetArgs};
use super::interrupt::{self, interrupted};
use super::limits::{DeadlineArgs, SpanArgs, WorkersArgs};
use super::results::{Fetched, ResultKind};
use super::{CommandError, PatienceArgs, print, print_counts, print_hints, print_json};
use crate::api::{ApiError, Job};
use crate::follow::{Reporter, Verdict, follow};
use crate::stack::{self, StackOptions};

/// Progress of a command with its job.
#[derive(Default)]
pub(super) struct Stage {
    /// The request to create the job was sent: the job may exist.
    asked: AtomicBool,
    /// The command that follows the job, once its guid is known.
    watch_command: OnceLock<String>,
    /// The command that fetches its results, once it has ended.
    results_command: OnceLock<String>,
}

/// The settings of a job's run: its limits, its priority, its API, and the time to wait.
#[derive(Debug, Clone, clap::Args)]
pub struct LifecycleArgs {
    #[command(flatten)]
    pub deadline: DeadlineArgs,
    #[command(flatten)]
    pub spans: SpanArgs,
    #[command(flatten)]
    pub workers: WorkersArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub patience: PatienceArgs,
}

/// Where a command creates its job, and how it follows it.
#[derive(Debug, Clone, clap::Args)]
pub struct FollowArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub patience: PatienceArgs,
    /// Print progress as JSON lines; the last one is the job
    #[arg(long)]
    pub json: bool,
}

impl FollowArgs {
    /// Has a job created or found, follows it until it has ended, and shows how it ended.
    pub(super) async fn job(
        &self,
        created: impl AsyncFnOnce(&JobRun<'_>, &mut Reporter) -> Result<Job, CommandError>,
    ) -> Result<ExitCode, CommandError> {
        let run = async |connection: &Connection, stage: &Stage| {
            let job_run = JobRun { connection, patience: &self.patience, json: self.json, stage };
            let job = created(&job_run, &mut Reporter::new(self.json)).await?;
            job_run.conclude(&job, None).await
        };
        self.target.carry_out(run).await
    }
}

impl TargetArgs {
    /// Connects to the API and does `work` there. After an interruption it prints what happens to the job.
    pub(super) async fn carry_out(
        &self,
        work: impl AsyncFnOnce(&Connection, &Stage) -> Result<ExitCode, CommandError>,
    ) -> Result<ExitCode, CommandError> {
        let local = self.stack_options()?;
        let stage = Stage::default();
        let run = async {
            let mut connection = match &local {
                Some(options) => Connection::local(options).await?,
                None => self.api.connect().await?,
            };
            let result = work(&connection, &stage).await;
            // The stack stays up, also after an error: the job can still be looked at. Only an interruption stops it.
            connection.leave_stack_running();
            result
        };
        tokio::select! {
            result = run => result,
            () = interrupted() => {
                // `run` is dropped by now, and with it a stack that this command started.
                print_interrupted(&stage, local.as_ref()).await;
                Ok(interrupt::exit_code())
            }
        }
    }
}

/// The context of all steps.
pub(super) struct JobRun<'a> {
    pub connection: &'a Connection,
    pub patience: &'a PatienceArgs,
    pub json: bool,
    pub stage: &'a Stage,
}

impl JobRun<'_> {
    /// Creates the job and follows it to its end.
    pub async fn create_and_follow(
        &self,
        new_job: &CreateJobRequest,
        reporter: &mut Reporter,
    ) -> Result<Job, CommandError> {
        self.stage.asked.store(true, Ordering::Relaxed);
        let (job, is_older) = self.connection.api.find_or_create_job(new_job, Uuid::new_v4()).await?;
        if is_older {
            eprintln!("The job {} does the same with this file. No new job was created.", job.job_guid);
        }
        self.follow(job, reporter).await
    }

    /// Sends a request that creates or finds a job, and follows the job until it has ended.
    pub async fn ask_and_follow(
        &self,
        ask: impl Future<Output = Result<Job, ApiError>>,
        reporter: &mut Reporter,
    ) -> Result<Job, CommandError> {
        self.stage.asked.store(true, Ordering::Relaxed);
        self.follow(ask.await?, reporter).await
    }

    async fn follow(&self, job: Job, reporter: &mut Reporter) -> Result<Job, CommandError> {
        let (connection, stage) = (self.connection, self.stage);
        let watch_command = stage.watch_command.get_or_init(|| connection.watch_command(job.job_guid));
        let job = follow(&connection.api, job, &self.patience.patience(), reporter)
            .await
            .map_err(|source| CommandError::Follow { source, watch_command: watch_command.clone() })?;
        stage.results_command.get_or_init(|| connection.results_command(job.job_guid));
        Ok(job)
    }

    /// Shows how the job ended and which results were fetched.
    ///
    /// # Errors
    ///
    /// That of `fetched`, after the job was shown.
    pub async fn conclude(
        &self,
        job: &Job,
        fetched: Option<Result<Fetched, CommandError>>,
    ) -> Result<ExitCode, CommandError> {
        let (here, failure) = match fetched {
            Some(Ok(fetched)) => (Some(fetched), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        if self.json {
            here.as_ref().map_or(Ok(()), |fetched| print_json(&ResultsEvent { event: "results", fetched }))?;
            print_json(job)?;
        } else {
            print_counts(self.connection, job).await?;
            match &here {
                Some(fetched) if fetched.is_empty() => eprintln!("The job has no such results."),
                Some(fetched) => print(&format!("\n{}", fetched.listing(true)))?,
                None => {}
            }
            let rows_are_here = here.is_some_and(|fetched| fetched.has(ResultKind::FailedRows));
            print_hints(self.connection, job, rows_are_here)?;
        }
        failure.map_or_else(|| Ok(Verdict::of(job).exit_code()), Err)
    }
}

/// The JSON line with the fetched files, printed before the job.
#[derive(Serialize)]
struct ResultsEvent<'a> {
    event: &'static str,
    #[serde(flatten)]
    fetched: &'a Fetched,
}

/// Prints what happens to the job after an interruption.
async fn print_interrupted(stage: &Stage, local: Option<&StackOptions>) {
    let stopped = match local {
        Some(options) => stack::running(&options.state_dir).await.is_err(),
        None => false,
    };
    match (stage.watch_command.get(), stopped) {
        (Some(watch_command), false) => match stage.results_command.get() {
            Some(results_command) => eprintln!("Interrupted; the job has ended.\nFetch its results: {results_command}"),
            None => {
                eprintln!("Interrupted; the job goes on without this command.");
                eprintln!("Look at it again: {watch_command}");
            }
        },
        (Some(_), true) => eprintln!("Interrupted; the local stack and the job are stopped."),
        (None, false) if stage.asked.load(Ordering::Relaxed) => {
            eprintln!("Interrupted while the job was being created. It may exist, see `rowmill jobs`.");
        }
        (None, false) => eprintln!("Interrupted; no job was created."),
        (None, true) => eprintln!("Interrupted; no job was created, and the local stack is stopped."),
    }
}
