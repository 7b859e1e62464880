//! `rowmill cancel`, `pause` and `resume`: stop a job, hold it back, and let it go on.

use std::process::ExitCode;

use rowmill_core::model::job::states::Status;

use super::connection::JobRefArgs;
use super::operator::Operator;
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

#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    #[command(flatten)]
    pub control: ControlArgs,
    /// Cancel a job of any owner, with your AWS credentials: invokes the functions of the stack. For its operators
    #[arg(long, conflicts_with = "url")]
    pub as_operator: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    Cancel,
    Pause,
    Resume,
}

pub async fn execute_cancel(args: CancelArgs) -> Result<ExitCode, CommandError> {
    if !args.as_operator {
        return execute(Control::Cancel, args.control).await;
    }
    let JobRefArgs { job_guid, api } = &args.control.job;
    let job = Operator::of(&api.functions).await?.cancel(*job_guid).await?;
    print_result(args.control.json, &job, || summary(&job, &Details::default()))?;
    Ok(ExitCode::SUCCESS)
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
