//! `rowmill pause` and `rowmill resume`: hold a job back, and let it go on.

use std::process::ExitCode;

use rowmill_api::status::Status;

use super::connection::JobRefArgs;
use super::{CommandError, print, print_json};
use crate::follow::{Details, summary};

/// Pause a job. Chunks in progress are finished first, no other one begins
///
/// Exit codes: 0 if the job is paused, 1 if it has ended or is about to.
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    /// Print the job as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Resume a paused job
///
/// Exit codes: 0 if the job goes on, also if it was not paused; 1 if it has ended or is being stopped.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    /// Print the job as a line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: PauseArgs) -> Result<ExitCode, CommandError> {
    let connection = args.job.api.connect().await?;
    let job = connection.api.pause_job(args.job.job_guid).await?;
    if args.json {
        print_json(&job)?;
    } else {
        print(&summary(&job, &Details::default()))?;
        if job.status == Status::Paused {
            eprintln!("The chunks in progress are finished first. The job's deadline is still {}.", job.deadline_at);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn execute_resume(args: ResumeArgs) -> Result<ExitCode, CommandError> {
    let connection = args.job.api.connect().await?;
    let job = connection.api.resume_job(args.job.job_guid).await?;
    if args.json {
        print_json(&job)?;
    } else {
        print(&summary(&job, &Details::default()))?;
        eprintln!("Look at it again: {}", connection.watch_command(job.job_guid));
    }
    Ok(ExitCode::SUCCESS)
}
