//! Stopping an attempt.

use crate::model::job::{Job, Stop};
use crate::ports::{Attempts, PortError};

/// Stops the present attempt of a job, unless it is stopped already. Returns the current job; none if the attempt has ended
/// meanwhile, by a run that assumed this one dead.
///
/// # Errors
/// `NotFound` if the job is gone; `Unavailable`.
pub async fn stop_attempt(jobs: &dyn Attempts, job: &Job, stop: &Stop) -> Result<Option<Job>, PortError> {
    Ok(jobs.stop(job.job_guid, job.attempt, stop).await?.of_attempt(job.attempt))
}
