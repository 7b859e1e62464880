//! Retunes an active job: its owner changes limits that it got when it was created. All processes read these limits
//! from the job row, so each takes effect at the next look. Only another `maxConcurrency` touches what runs or has a
//! message: it pauses the job, and resumes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
pub use rowmill_api::request::RetuneRequest;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::{Job, Tuning, details_until};
use rowmill_core::model::owner_priorities::OwnerPriorities;
use rowmill_core::ports::PortError;
use rowmill_core::progress::update::update_job;

use crate::error::{ChangeError, not_ending, owned};
use crate::pause::Pauser;

/// The use case and the ports it works through.
pub struct Retuner {
    /// Sends what another `maxConcurrency` has sent again.
    pub pauser: Pauser,
    /// The longest deadline that a request may name, in seconds.
    pub deadline_max: u64,
    /// Retention of a job after its end.
    pub retention: Duration,
    pub owner_priorities: OwnerPriorities,
}

/// Maximum number of tries if the job moves on to another attempt, whose deadline counts from another time.
const TRIES: usize = 3;

impl Retuner {
    /// Gives the owner's job the limits of this request. A job that has them stays as it is.
    pub async fn retune(&self, owner: &Owner, job_guid: JobGuid, request: &RetuneRequest) -> Result<Job, ChangeError> {
        if *request == RetuneRequest::default() {
            return Err(ChangeError::NoLimit);
        }
        request.check(self.deadline_max).map_err(|(field, message)| ChangeError::Field { field, message })?;
        let priority = request.priority.map(|asked| self.owner_priorities.allow(owner, asked)).transpose()?;
        let Pauser { jobs, clock, .. } = &self.pauser;
        let mut job = not_ending(owned(&**jobs, owner, job_guid, clock.now()).await?)?;
        for _ in 0..TRIES {
            let deadline_at = request.deadline_seconds.map(|seconds| self.deadline(&job, seconds)).transpose()?;
            let (tolerance, max_concurrency) = (request.tolerance.map(Into::into), request.max_concurrency);
            let tuning = Tuning { tolerance, max_concurrency, priority, deadline_at };
            let restarts = AtomicBool::new(false);
            let retune = |job: &Job| {
                // As a pause: each try of the write reads the clock.
                let next = job.retune(&tuning, clock.now())?;
                restarts.store(next.epoch != job.epoch, Ordering::Relaxed);
                Some(next)
            };
            match update_job(&**jobs, &job, retune).await?.done() {
                Ok(job) => {
                    // Not for an earlier resume: a second message could join its resend.
                    if restarts.into_inner() {
                        self.pauser.send_resend(&job).await;
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
        let (now, deadline_at) = (self.pauser.clock.now(), job.attempt_at + Duration::from_secs(seconds));
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
