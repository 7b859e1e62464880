//! `rowmill again`: runs a job once more, with the same settings.

use std::process::ExitCode;

use rowmill_core::model::ids::JobGuid;

use super::CommandError;
use super::lifecycle::{FollowArgs, JobRun};
use crate::follow::Reporter;

/// Runs a job once more: a new job of the same type, over the same input, with the same params and limits
///
/// Exit codes: as for `rowmill run`.
#[derive(Debug, clap::Args)]
pub struct AgainArgs {
    /// The job
    pub job_guid: JobGuid,
    /// Only check the rows this time
    #[arg(long, conflicts_with = "for_real")]
    pub dry_run: bool,
    /// Do what a dry run has checked
    #[arg(long)]
    pub for_real: bool,
    #[command(flatten)]
    pub follow: FollowArgs,
}

pub async fn execute(args: AgainArgs) -> Result<ExitCode, CommandError> {
    let dry_run = (args.dry_run || args.for_real).then_some(args.dry_run);
    let again = async |job_run: &JobRun<'_>, reporter: &mut Reporter| {
        let request = job_run.connection.api.request_of(args.job_guid, dry_run).await?;
        job_run.create_and_follow(&request, reporter).await
    };
    args.follow.job(again).await
}
