//! `rowmill job`: shows a job, or follows it to its end.

use std::process::ExitCode;

use super::connection::{Connection, JobRefArgs};
use super::interrupt::{self, interrupted};
use super::{CommandError, PatienceArgs, show_job};
use crate::api::Job;
use crate::follow::{Reporter, Verdict, follow};

/// Shows a job, its counts and its first failed rows
///
/// Exit codes with --watch: as for `rowmill run`. Without: 0 if the job was found.
#[derive(Debug, clap::Args)]
pub struct JobArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    #[command(flatten)]
    pub watch: WatchArgs,
}

pub async fn execute(args: JobArgs) -> Result<ExitCode, CommandError> {
    let connection = args.job.api.connect().await?;
    let job = connection.api.job(args.job.job_guid).await?;
    if args.watch.watch {
        return args.watch.follow(&connection, job).await;
    }
    show_job(&connection, &job, args.watch.json).await?;
    Ok(ExitCode::SUCCESS)
}

/// The way to follow a job that exists already.
#[derive(Debug, Clone, clap::Args)]
pub struct WatchArgs {
    /// Follow the job to its end
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub patience: PatienceArgs,
    /// Print JSON lines; the last one is the job
    #[arg(long)]
    pub json: bool,
}

impl WatchArgs {
    /// Follows a job to its end and shows it. An interruption does not affect the job.
    pub(super) async fn follow(&self, connection: &Connection, job: Job) -> Result<ExitCode, CommandError> {
        let watch_command = connection.watch_command(job.job_guid);
        let mut reporter = Reporter::new(self.json);
        let patience = self.patience.patience();
        let followed = tokio::select! {
            followed = follow(&connection.api, job, &patience, &mut reporter) => followed,
            () = interrupted() => {
                drop(reporter);
                eprintln!("Interrupted; the job goes on without this command.\nLook at it again: {watch_command}");
                return Ok(interrupt::exit_code());
            }
        };
        let job = followed.map_err(|source| CommandError::Follow { source, watch_command })?;
        show_job(connection, &job, self.json).await?;
        Ok(Verdict::of(&job).exit_code())
    }
}
