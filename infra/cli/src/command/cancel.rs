//! `rowmill cancel`: stops a job.

use std::process::ExitCode;

use super::connection::JobRefArgs;
use super::{CommandError, print, print_json};
use crate::follow::{Details, summary};

/// Stops a job. Finished items keep their results, the other items are skipped
///
/// Exit codes: 0 if the job is being cancelled or already was, 1 if it had ended before.
#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    /// Print the job as a line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: CancelArgs) -> Result<ExitCode, CommandError> {
    let connection = args.job.api.connect().await?;
    let job = connection.api.cancel_job(args.job.job_guid).await?;
    if args.json {
        print_json(&job)?;
    } else {
        print(&summary(&job, &Details::default()))?;
        if !job.status.is_terminal() {
            eprintln!(
                "The chunks in progress are finished first.\nLook at it again: {}",
                connection.watch_command(job.job_guid)
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
