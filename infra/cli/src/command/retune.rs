//! `rowmill retune`: changes limits of an active job.

use std::process::ExitCode;

use rowmill_api::request::RetuneRequest;

use super::connection::JobRefArgs;
use super::limits::{DeadlineArgs, ToleranceArgs, WorkersArgs};
use super::{CommandError, print_result};
use crate::follow::{Details, summary};

/// Changes limits of an active job. Those that are left out stay as they are
///
/// A deadline counts from the creation of the job, or from its last redrive. A tolerance replaces the old one as a
/// whole. With another number of chunks at once, running chunks end first: the job continues within 180 seconds, unless
/// the stack has another `StopGraceSeconds`.
///
/// Exit codes: 0 if the job has these limits, 1 if it has ended or is being stopped, or if they are not allowed.
#[derive(Debug, clap::Args)]
pub struct RetuneArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    #[command(flatten)]
    pub workers: WorkersArgs,
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
    #[command(flatten)]
    pub deadline: DeadlineArgs,
    /// Print the job as a line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: RetuneArgs) -> Result<ExitCode, CommandError> {
    let limits = RetuneRequest {
        tolerance: args.tolerance.to_tolerance(),
        max_concurrency: args.workers.max_concurrency,
        priority: args.workers.priority,
        deadline_seconds: args.deadline.seconds(),
    };
    let connection = args.job.api.connect().await?;
    let job = connection.api.retune_job(args.job.job_guid, &limits).await?;
    print_result(args.json, &job, || summary(&job, &Details::default()))?;
    if !args.json {
        eprintln!(
            "The job's deadline is {}.\nLook at it again: {}",
            job.deadline_at,
            connection.watch_command(job.job_guid)
        );
    }
    Ok(ExitCode::SUCCESS)
}
