//! A job from its creation to what it leaves, as `rowmill run` and `rowmill export` see it through.

use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use uuid::Uuid;

use super::connection::{Connection, TargetArgs};
use super::interrupt::{self, interrupted};
use super::results::{Fetched, ResultKind, fetch};
use super::{CommandError, PatienceArgs, print, print_json, show_counts, tell_of_failed_rows};
use crate::api::{Job, NewJob};
use crate::download::Folder;
use crate::follow::{Reporter, Verdict, follow};
use crate::stack::{self, StackOptions};

/// How far a command has got with its job.
#[derive(Default)]
pub(super) struct Stage {
    /// The job is being asked for: from now on there may be one.
    asked: AtomicBool,
    /// The command that shows the job again, once its name is known.
    look_again: OnceLock<String>,
    /// The command that fetches its results, once it has ended.
    fetch_again: OnceLock<String>,
}

/// Connects to the API meant, does `work` there, and says what becomes of the job where it is interrupted.
///
/// # Errors
///
/// Those of the connection and of `work`.
pub(super) async fn carry_out(
    target: &TargetArgs,
    work: impl AsyncFnOnce(&Connection, &Stage) -> Result<ExitCode, CommandError>,
) -> Result<ExitCode, CommandError> {
    let local = target.stack_options()?;
    let stage = Stage::default();
    let run = async {
        let mut connection = match &local {
            Some(options) => Connection::local(options).await?,
            None => target.api.connect().await?,
        };
        let result = work(&connection, &stage).await;
        // Whatever became of the job, it can still be looked at; only an interrupted command takes its stack along.
        connection.leave_stack_running();
        result
    };
    tokio::select! {
        result = run => result,
        () = interrupted() => {
            // `run` is dropped by now, and with it a stack this command had started.
            tell_interrupted(&stage, local.as_ref()).await;
            Ok(interrupt::exit_code())
        }
    }
}

/// What the steps of a job's life have in common.
pub(super) struct JobRun<'a> {
    /// Where the job is.
    pub connection: &'a Connection,
    /// How long to bear silence.
    pub patience: &'a PatienceArgs,
    /// Whether a program reads along.
    pub json: bool,
    /// How far it has got.
    pub stage: &'a Stage,
}

impl JobRun<'_> {
    /// Has the job created, and follows it to its end.
    pub async fn create_and_follow(&self, new_job: &NewJob, reporter: &mut Reporter) -> Result<Job, CommandError> {
        let (connection, stage) = (self.connection, self.stage);
        stage.asked.store(true, Ordering::Relaxed);
        let job = connection.api.create_job(new_job, Uuid::new_v4()).await?;
        let look_again = stage.look_again.get_or_init(|| connection.look_again(&job.job_guid));
        let job = follow(&connection.api, job, &self.patience.patience(), reporter)
            .await
            .map_err(|source| CommandError::Follow { source, look_again: look_again.clone() })?;
        stage.fetch_again.get_or_init(|| connection.fetch_results(&job.job_guid));
        Ok(job)
    }

    /// Fetches what the ended job has left: the kinds in `only`, or all.
    pub async fn fetch(
        &self,
        job: &Job,
        only: &[ResultKind],
        folder: &Folder,
        reporter: &Reporter,
    ) -> Result<Fetched, CommandError> {
        fetch(self.connection, &job.job_guid, only, folder, reporter).await
    }

    /// Shows how the job ended and what of it is here now.
    ///
    /// # Errors
    ///
    /// That of `fetched`, once the job has been shown.
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
            show_counts(self.connection, job).await?;
            match &here {
                Some(fetched) if fetched.is_empty() => eprintln!("The job has no such results."),
                Some(fetched) => print(&format!("\n{}", fetched.told(true)))?,
                None => {}
            }
            if !here.is_some_and(|fetched| fetched.has(ResultKind::FailedRows)) {
                tell_of_failed_rows(self.connection, job)?;
            }
        }
        failure.map_or_else(|| Ok(Verdict::of(job).exit_code()), Err)
    }
}

/// What was written, as a line before that of the job.
#[derive(Serialize)]
struct ResultsEvent<'a> {
    event: &'static str,
    #[serde(flatten)]
    fetched: &'a Fetched,
}

/// Says what becomes of the job.
async fn tell_interrupted(stage: &Stage, local: Option<&StackOptions>) {
    let stopped = match local {
        Some(options) => stack::running(&options.state_dir).await.is_err(),
        None => false,
    };
    match (stage.look_again.get(), stopped) {
        (Some(look_again), false) => match stage.fetch_again.get() {
            Some(fetch_again) => eprintln!("Interrupted; the job has ended.\nFetch its results: {fetch_again}"),
            None => {
                eprintln!("Interrupted; the job goes on without this command.");
                eprintln!("Look at it again: {look_again}");
            }
        },
        (Some(_), true) => eprintln!("Interrupted; the local stack is stopped, and the job with it."),
        (None, false) if stage.asked.load(Ordering::Relaxed) => {
            eprintln!("Interrupted while the job was being created: there may be one, see `rowmill jobs`.");
        }
        (None, false) => eprintln!("Interrupted; no job was created."),
        (None, true) => eprintln!("Interrupted; no job was created, the local stack is stopped."),
    }
}
