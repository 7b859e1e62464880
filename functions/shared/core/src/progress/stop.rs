//! Stopping an attempt.

use jiff::Timestamp;

use crate::model::job::{Job, Stop};
use crate::ports::{Attempts, PortError, Stopped};

/// Stops the current attempt of a job unless it is already stopped. Returns the current job, or `None` if another run,
/// which assumed this one dead, has ended the attempt meanwhile.
///
/// # Errors
/// `NotFound` if the job is gone; `Unavailable`.
pub async fn stop_attempt(jobs: &dyn Attempts, job: &Job, stop: &Stop) -> Result<Option<Job>, PortError> {
    Ok(jobs.stop(job.job_guid, job.attempt, stop).await?.of_attempt(job.attempt))
}

/// Stops an attempt whose deadline has passed. Whether any of its chunks has begun is decided by the write itself.
///
/// # Errors
/// As [`stop_attempt`].
pub async fn stop_overdue(jobs: &dyn Attempts, job: &Job, now: Timestamp) -> Result<Stopped, PortError> {
    match jobs.stop(job.job_guid, job.attempt, &Stop::overdue(job, now)).await? {
        // The first chunk has begun since the job was read.
        Stopped::Not(begun) if !begun.is_past(job.attempt) && begun.stop.is_none() => {
            jobs.stop(job.job_guid, job.attempt, &Stop::overdue(&begun, now)).await
        }
        stopped => Ok(stopped),
    }
}
