//! Retunes an active job: its owner changes limits that it got when it was created. All processes read these limits
//! from the job row, so each takes effect at the next look. Only another `maxConcurrency` touches what runs or has a
//! message: it holds the job back until the runs of the old one have ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
pub use rowmill_api::request::RetuneRequest;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::{Job, Tuning, details_until};
use rowmill_core::ports::PortError;
use rowmill_core::progress::update::update_job;

use crate::change::{Changer, TRIES, not_ending};
use crate::error::ChangeError;

impl Changer {
    /// Gives the owner's job the limits of this request. A job that has them stays as it is.
    pub async fn retune(&self, owner: &Owner, job_guid: JobGuid, request: &RetuneRequest) -> Result<Job, ChangeError> {
        if *request == RetuneRequest::default() {
            return Err(ChangeError::NoLimit);
        }
        request.check(self.deadline_max).map_err(|(field, message)| ChangeError::Field { field, message })?;
        let priority = request.priority.map(|asked| self.owner_priorities.allow(owner, asked)).transpose()?;
        let mut job = self.active(owner, job_guid).await?;
        for _ in 0..TRIES {
            let deadline_at = request.deadline_seconds.map(|seconds| self.deadline(&job, seconds)).transpose()?;
            let (tolerance, max_concurrency) = (request.tolerance.map(Into::into), request.max_concurrency);
            let tuning = Tuning { tolerance, max_concurrency, priority, deadline_at };
            let restarts = AtomicBool::new(false);
            let retune = |job: &Job| {
                // Each try of the write reads the clock.
                let next = job.retune(&tuning, self.clock.now())?;
                restarts.store(next.epoch != job.epoch, Ordering::Relaxed);
                Some(next)
            };
            match update_job(&*self.jobs, &job, retune).await?.done() {
                Ok(job) => {
                    // Not for an earlier resume: a second message could join its resend.
                    if restarts.into_inner() {
                        self.send_split(&job).await;
                    }
                    return Ok(job);
                }
                Err(now) => job = not_ending(*now)?,
            }
        }
        Err(PortError::unavailable("retuning the job", "its row keeps changing").into())
    }

    /// The deadline so many seconds after the present attempt of the job began.
    fn deadline(&self, job: &Job, seconds: u64) -> Result<Timestamp, ChangeError> {
        let (now, deadline_at) = (self.clock.now(), job.attempt_at + Duration::from_secs(seconds));
        if deadline_at == job.deadline_at {
            return Ok(deadline_at);
        }
        if deadline_at <= now {
            let passed = u64::try_from(now.duration_since(job.attempt_at).as_secs()).unwrap_or(0);
            return Err(ChangeError::DeadlinePassed(passed + 1));
        }
        let until = details_until(job.job_guid);
        if deadline_at + self.retention > until { Err(ChangeError::TooOld(until)) } else { Ok(deadline_at) }
    }
}
