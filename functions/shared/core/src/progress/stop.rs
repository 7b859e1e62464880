//! Stopping an attempt.

use crate::model::job::{Job, Stop};
use crate::ports::{Attempts, PortError};

/// Stops the current attempt of a job unless it is already stopped. Returns the current job, or `None` if another run,
/// which assumed this one dead, has ended the attempt meanwhile.
///
/// # Errors
/// `NotFound` if the job is gone; `Unavailable`.
pub async fn stop_attempt(jobs: &dyn Attempts, job: &Job, stop: &Stop) -> Result<Option<Job>, PortError> {
    Ok(jobs.stop(job.job_guid, job.attempt, stop).await?.of_attempt(job.attempt))
}
