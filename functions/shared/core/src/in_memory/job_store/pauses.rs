use async_trait::async_trait;
use jiff::Timestamp;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use crate::model::ids::JobGuid;
use crate::model::job::Job;
use crate::model::states::Transition;
use crate::ports::{Pauses, PortError, Resent, WriteLost};

#[async_trait]
impl Pauses for InMemoryJobStore {
    async fn pause(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        if job.attempt == attempt && job.is_paused() {
            return Ok(job.clone());
        }
        match Transition::Pause.apply(job.status).filter(|_| job.attempt == attempt && job.stop.is_none()) {
            Some(paused) => {
                (job.paused_from, job.status) = (Some(job.status), paused);
                job.pauses += 1;
                job.resend_from = None;
                job.moved_at = now;
                Ok(job.clone())
            }
            None => Err(WriteLost::Condition(Box::new(job.clone()))),
        }
    }

    async fn resume(&self, job: JobGuid, attempt: u32, now: Timestamp) -> Result<Job, WriteLost> {
        let mut tables = lock(&self.0);
        let job = tables.job(job)?;
        if job.attempt != attempt || !job.is_paused() {
            return Err(WriteLost::Condition(Box::new(job.clone())));
        }
        *job = job.clone().out_of_pause();
        job.pauses += 1;
        job.resend_from = Some(0);
        job.recoveries = 0;
        job.moved_at = now;
        job.wake_at = Some(now);
        Ok(job.clone())
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
