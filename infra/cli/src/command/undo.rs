//! `rowmill undo`: reverses what a job has written to its dataset.

use std::process::ExitCode;

use rowmill_core::model::ids::JobGuid;

use super::CommandError;
use super::lifecycle::{FollowArgs, JobRun};
use crate::follow::Reporter;

/// Undoes an import: each of its records is again what it was before, unless another job has changed it since
///
/// An undo is a job, which can be undone too. Exit codes: as for `rowmill run`.
#[derive(Debug, clap::Args)]
pub struct UndoArgs {
    /// The job to undo
    pub job_guid: JobGuid,
    #[command(flatten)]
    pub follow: FollowArgs,
}

pub async fn execute(args: UndoArgs) -> Result<ExitCode, CommandError> {
    let undo = async |job_run: &JobRun<'_>, reporter: &mut Reporter| {
        job_run.ask_and_follow(job_run.connection.api.undo_job(args.job_guid), reporter).await
    };
    args.follow.job(undo).await
}
