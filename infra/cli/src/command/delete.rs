//! `rowmill delete`: deletes a job, an upload or a dataset.

use std::process::ExitCode;

use rowmill_core::model::ids::{FileGuid, JobGuid};

use super::CommandError;
use super::connection::ApiArgs;
use super::lifecycle::{FollowArgs, JobRun};
use crate::follow::Reporter;
use crate::upload::RememberedUploads;

/// Deletes a job, an upload or a dataset
#[derive(Debug, clap::Subcommand)]
pub enum Delete {
    Job(DeleteJobArgs),
    Upload(DeleteUploadArgs),
    Dataset(DeleteDatasetArgs),
}

/// Deletes an ended job with its results
///
/// Nobody sees it from then on. What is stored of it is erased within half an hour. Its upload and its records stay.
#[derive(Debug, clap::Args)]
pub struct DeleteJobArgs {
    /// The job's guid
    pub job_guid: JobGuid,
    #[command(flatten)]
    pub api: ApiArgs,
}

/// Deletes an upload, or what is stored of one that is not complete
#[derive(Debug, clap::Args)]
pub struct DeleteUploadArgs {
    /// The upload's guid
    pub file_guid: FileGuid,
    #[command(flatten)]
    pub api: ApiArgs,
}

/// Deletes the records of a dataset
///
/// The deletion is a job. What a job writes that is created later stays. Exit codes: as for `rowmill run`.
#[derive(Debug, clap::Args)]
pub struct DeleteDatasetArgs {
    /// The dataset's name
    pub dataset: String,
    /// Delete, which cannot be undone
    #[arg(long, required = true)]
    pub yes: bool,
    #[command(flatten)]
    pub follow: FollowArgs,
}

pub async fn execute(delete: Delete) -> Result<ExitCode, CommandError> {
    match delete {
        Delete::Job(DeleteJobArgs { job_guid, api }) => {
            api.connect().await?.api.delete_job(job_guid).await?;
            eprintln!("The job {job_guid} is deleted.");
        }
        Delete::Upload(DeleteUploadArgs { file_guid, api }) => {
            api.connect().await?.api.delete_upload(file_guid).await?;
            if let Some(uploads) = RememberedUploads::of_user() {
                uploads.forget(file_guid);
            }
            eprintln!("The upload {file_guid} is deleted.");
        }
        Delete::Dataset(args) => {
            let delete = async |job_run: &JobRun<'_>, reporter: &mut Reporter| {
                job_run.ask_and_follow(job_run.connection.api.delete_dataset(&args.dataset), reporter).await
            };
            return args.follow.job(delete).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}
