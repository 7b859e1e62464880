//! `rowmill prune`: removes the records that an import has not got.

use std::process::ExitCode;

use rowmill_api::request::PruneRequest;
use rowmill_core::model::ids::JobGuid;

use super::CommandError;
use super::lifecycle::{FollowArgs, JobRun};
use crate::follow::Reporter;

/// Counts the records that an import has not got, and with --yes removes them: then its dataset has what its file has
///
/// All rows of the import must have succeeded. What a later job has written stays. A prune is a job, which can be undone.
/// Exit codes: as for `rowmill run`.
#[derive(Debug, clap::Args)]
pub struct PruneArgs {
    /// The import
    pub job_guid: JobGuid,
    /// Remove the records
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub follow: FollowArgs,
}

pub async fn execute(args: PruneArgs) -> Result<ExitCode, CommandError> {
    let prune = PruneRequest { dry_run: Some(!args.yes) };
    let pruned = async |job_run: &JobRun<'_>, reporter: &mut Reporter| {
        job_run.ask_and_follow(job_run.connection.api.prune_dataset(args.job_guid, prune), reporter).await
    };
    let code = args.follow.job(pruned).await?;
    if !args.yes {
        eprintln!("Nothing was removed. Remove them with `rowmill prune {} --yes`.", args.job_guid);
    }
    Ok(code)
}
