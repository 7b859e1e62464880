//! `rowmill cancel`: a job told to stop.

use std::process::ExitCode;

use super::connection::ApiArgs;
use super::{CommandError, print, print_json};
use crate::follow::summary;

/// Stops a job: what is done stays, the rest is skipped
///
/// Exit codes: 0 if the job is stopped or was before, 1 if it had ended otherwise.
#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    /// The job's guid
    #[arg(value_parser = super::job_guid)]
    pub job_guid: String,
    /// Where the API is.
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print the job as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// See [`CommandError`]; nothing has changed then.
pub async fn execute(args: CancelArgs) -> Result<ExitCode, CommandError> {
    let connection = args.api.connect().await?;
    let job = connection.api.cancel_job(&args.job_guid).await?;
    if args.json {
        print_json(&job)?;
    } else {
        print(&summary(&job))?;
        if !job.status.is_terminal() {
            eprintln!("What runs is brought to an end.\nLook at it again: {}", connection.look_again(&job.job_guid));
        }
    }
    Ok(ExitCode::SUCCESS)
}
