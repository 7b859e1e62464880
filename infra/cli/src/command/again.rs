//! `rowmill again`: runs a job once more, with the same settings.

use std::process::ExitCode;

use rowmill_core::model::ids::JobGuid;

use super::connection::{Connection, TargetArgs};
use super::lifecycle::{JobRun, Stage};
use super::{CommandError, PatienceArgs};
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
    pub target: TargetArgs,
    #[command(flatten)]
    pub patience: PatienceArgs,
    /// Print progress as JSON lines; the last one is the job
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: AgainArgs) -> Result<ExitCode, CommandError> {
    args.target.carry_out(async |connection, stage| again(&args, connection, stage).await).await
}

async fn again(args: &AgainArgs, connection: &Connection, stage: &Stage) -> Result<ExitCode, CommandError> {
    let dry_run = (args.dry_run || args.for_real).then_some(args.dry_run);
    let request = connection.api.request_of(args.job_guid, dry_run).await?;
    let job_run = JobRun { connection, patience: &args.patience, json: args.json, stage };
    let job = job_run.create_and_follow(&request, &mut Reporter::new(args.json)).await?;
    job_run.conclude(&job, None).await
}
