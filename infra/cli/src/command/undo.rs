//! `rowmill undo`: reverses what a job has written to its dataset.

use std::process::ExitCode;

use rowmill_core::model::ids::JobGuid;

use super::connection::{Connection, TargetArgs};
use super::lifecycle::{JobRun, Stage};
use super::{CommandError, PatienceArgs};
use crate::follow::Reporter;

/// Undoes an import: each of its records is again what it was before, unless another job has changed it since
///
/// An undo is a job, which can be undone too. Exit codes: as for `rowmill run`.
#[derive(Debug, clap::Args)]
pub struct UndoArgs {
    /// The job to undo
    pub job_guid: JobGuid,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub patience: PatienceArgs,
    /// Print progress as JSON lines; the last one is the job
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: UndoArgs) -> Result<ExitCode, CommandError> {
    args.target.carry_out(async |connection, stage| undo(&args, connection, stage).await).await
}

async fn undo(args: &UndoArgs, connection: &Connection, stage: &Stage) -> Result<ExitCode, CommandError> {
    let job_run = JobRun { connection, patience: &args.patience, json: args.json, stage };
    let job = job_run.undo_and_follow(args.job_guid, &mut Reporter::new(args.json)).await?;
    job_run.conclude(&job, None).await
}
