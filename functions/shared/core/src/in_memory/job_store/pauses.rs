use async_trait::async_trait;
use jiff::Timestamp;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use crate::model::breaker::BreakerPause;
use crate::model::ids::JobGuid;
use crate::model::job::Job;
use crate::model::job::states::Transition;
use crate::ports::{Pauses, PortError, Resent, WriteLost};

#[async_trait]
impl Pauses for InMemoryJobStore {
    async fn pause(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        if job.attempt == attempt && job.is_paused() {
            if job.breaker_pause.take().is_some() {
                job.pauses += 1;
                job.moved_at = now;
            }
            return Ok(job.clone());
        }
        pause(job, attempt, now)?;
        Ok(job.clone())
    }

    async fn pause_by_breaker(
        &self,
        job: JobGuid,
        attempt: u32,
        reason: &BreakerPause,
        look_at: Timestamp,
    ) -> Result<Job, WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        if job.attempt == attempt && job.is_paused() {
            return Ok(job.clone());
        }
        pause(job, attempt, reason.at)?;
        job.breaker_pause = Some(reason.clone());
        job.wake_at = Some(look_at);
        Ok(job.clone())
    }

    async fn resume(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        if job.attempt != attempt || !job.is_paused() {
            return Err(WriteLost::Condition(Box::new(job.clone())));
        }
        Ok(resume(job, now))
    }

    async fn resume_by_breaker(
        &self,
        job: JobGuid,
        attempt: u32,
        pauses: u32,
        now: Timestamp,
    ) -> Result<Job, WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        if (job.attempt, job.pauses) != (attempt, pauses) || job.breaker_pause.is_none() {
            return Err(WriteLost::Condition(Box::new(job.clone())));
        }
        Ok(resume(job, now))
    }

    async fn note_resent(&self, job: JobGuid, resent: Resent, now: Timestamp) -> Result<bool, PortError> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        if (job.pauses, job.resend_from) != (resent.pauses, Some(resent.from)) {
            return Ok(resent.was_noted(job));
        }
        job.resend_from = resent.next;
        job.moved_at = now;
        Ok(true)
    }
}

fn pause(job: &mut Job, attempt: u32, now: Timestamp) -> Result<(), WriteLost> {
    let paused = Transition::Pause.apply(job.status).filter(|_| job.attempt == attempt && job.stop.is_none());
    let Some(paused) = paused else { return Err(WriteLost::Condition(Box::new(job.clone()))) };
    (job.paused_from, job.status) = (Some(job.status), paused);
    job.pauses += 1;
    job.resend_from = None;
    job.moved_at = now;
    Ok(())
}

fn resume(job: &mut Job, now: Timestamp) -> Job {
    *job = job.clone().out_of_pause();
    job.pauses += 1;
    job.resend_from = Some(0);
    job.recoveries = 0;
    job.moved_at = now;
    job.wake_at = Some(now);
    job.clone()
}
