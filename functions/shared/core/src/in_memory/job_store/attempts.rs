use async_trait::async_trait;
use jiff::Timestamp;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use crate::model::ids::JobGuid;
use crate::model::job::states::{Status, Transition};
use crate::model::job::{Job, Stop, StopCode};
use crate::ports::{Attempts, NewAttempt, PortError, RedriveError, Stopped};

#[async_trait]
impl Attempts for InMemoryJobStore {
    async fn stop(&self, job: JobGuid, attempt: u32, stop: &Stop) -> Result<Stopped, PortError> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        if job.is_past(attempt) || job.stop.is_some() {
            let own = !job.is_past(attempt) && job.stop.as_ref() == Some(stop);
            return Ok(if own { Stopped::Now(job.clone()) } else { Stopped::Not(job.clone()) });
        }
        if stop.code == StopCode::CapacityExceeded && job.first_chunk_at.is_some() {
            return Ok(Stopped::Not(job.clone()));
        }
        *job = job.clone().out_of_pause();
        job.stop = Some(stop.clone());
        job.moved_at = stop.at;
        job.wake_at = Some(stop.at);
        if stop.code == StopCode::Cancelled {
            job.status = Transition::Cancel.apply(job.status).unwrap_or(job.status);
        }
        Ok(Stopped::Now(job.clone()))
    }

    async fn note_first_chunk(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, PortError> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        if job.attempt == attempt && job.status == Status::Running && job.stop.is_none() {
            job.first_chunk_at = job.first_chunk_at.or(Some(now));
        }
        Ok(job.clone())
    }

    async fn redrive(&self, attempt: &NewAttempt) -> Result<Job, RedriveError> {
        let mut tables = lock(&self.0);
        let job = tables.job(attempt.seen.job_guid)?.clone();
        if attempt.was_applied(&job) {
            return Ok(job);
        }
        if (job.status, job.attempt) != (attempt.seen.status, attempt.seen.attempt) || !job.status.is_terminal() {
            return Err(RedriveError::Moved(Box::new(job)));
        }
        tables.slots.take(&job, attempt.ceilings).map_err(RedriveError::Full)?;
        let next = attempt.job();
        tables.jobs.insert(next.job_guid, next.clone());
        Ok(next)
    }
}
