//! `rowmill cancel`, `pause` and `resume`: stop a job, hold it back, and let it go on.

use std::process::ExitCode;

use rowmill_core::model::job::states::Status;

use super::connection::JobRefArgs;
use super::{CommandError, print_result};
use crate::follow::{Details, summary};

#[derive(Debug, clap::Args)]
pub struct ControlArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    /// Print the job as a line of JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    Cancel,
    Pause,
    Resume,
}

pub async fn execute(control: Control, args: ControlArgs) -> Result<ExitCode, CommandError> {
    let connection = args.job.api.connect().await?;
    let (api, job_guid) = (&connection.api, args.job.job_guid);
    let job = match control {
        Control::Cancel => api.cancel_job(job_guid).await?,
        Control::Pause => api.pause_job(job_guid).await?,
        Control::Resume => api.resume_job(job_guid).await?,
    };
    print_result(args.json, &job, || summary(&job, &Details::default()))?;
    if args.json {
        return Ok(ExitCode::SUCCESS);
    }
    const FINISHED_FIRST: &str = "The chunks in progress are finished first.";
    let watch = format!("Look at it again: {}", connection.watch_command(job.job_guid));
    match control {
        Control::Cancel if !job.status.is_terminal() => eprintln!("{FINISHED_FIRST}\n{watch}"),
        Control::Pause if job.status == Status::Paused => {
            eprintln!("{FINISHED_FIRST} The job's deadline is still {}.", job.deadline_at);
        }
        Control::Resume => eprintln!("{watch}"),
        Control::Cancel | Control::Pause => {}
    }
    Ok(ExitCode::SUCCESS)
}
