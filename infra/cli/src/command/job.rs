//! `rowmill job`: one job, now or to its end.

use std::process::ExitCode;

use super::connection::{ApiArgs, Connection};
use super::interrupt::{self, interrupted};
use super::{CommandError, PatienceArgs, show_job};
use crate::api::Job;
use crate::follow::{Reporter, Verdict, follow};

/// Shows a job, its counts and first failed rows
///
/// Exit codes with --watch: as of `rowmill run`. Without: 0 if the job was found.
#[derive(Debug, clap::Args)]
pub struct JobArgs {
    /// The job's guid
    #[arg(value_parser = super::job_guid)]
    pub job_guid: String,
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
/// See [`CommandError`].
pub async fn execute(args: JobArgs) -> Result<ExitCode, CommandError> {
    let connection = args.api.connect().await?;
    let job = connection.api.job(&args.job_guid).await?;
    if args.watch {
        return watch(&connection, job, &args.patience, args.json).await;
    }
    show_job(&connection, &job, args.json).await?;
    Ok(ExitCode::SUCCESS)
}

/// Follows a job to its end and shows it. An interruption leaves the job alone.
pub(super) async fn watch(
    connection: &Connection,
    job: Job,
    patience: &PatienceArgs,
    json: bool,
) -> Result<ExitCode, CommandError> {
    let look_again = connection.look_again(&job.job_guid);
    let mut reporter = Reporter::new(json);
    let patience = patience.patience();
    let followed = tokio::select! {
        followed = follow(&connection.api, job, &patience, &mut reporter) => followed,
        () = interrupted() => {
            drop(reporter);
            eprintln!("Interrupted; the job goes on without this command.\nLook at it again: {look_again}");
            return Ok(interrupt::exit_code());
        }
    };
    let job = followed.map_err(|source| CommandError::Follow { source, look_again })?;
    show_job(connection, &job, json).await?;
    Ok(Verdict::of(&job).exit_code())
}
