//! Deletes jobs that are kept for a time of their own when it is over, and erases deleted jobs: first their objects, then
//! their rows, and the job row last. If the process dies on the way, the job row is still there, and the job is due again
//! when the claim is over.
//!
//! A job is due once everybody has ended who read its row before the deletion. Who reads it later writes nothing.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::model::job::{Job, LEASE_MARGIN};
use rowmill_core::model::keys;
use rowmill_core::ports::{Clock, Due, ERASE_SHARD, JobStore, ObjectErasures, PortError};
use rowmill_core::progress::update::update_job;

/// The time limit of an invocation, as the template sets it.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// The use case and the ports it works through.
pub struct Eraser {
    pub jobs: Arc<dyn JobStore>,
    pub objects: Arc<dyn ObjectErasures>,
    pub clock: Arc<dyn Clock>,
    pub limits: EraseLimits,
}

#[derive(Clone, Copy, Debug)]
pub struct EraseLimits {
    /// Number of jobs that are looked for at once.
    pub jobs: usize,
    /// Time after which an invocation begins nothing further: a job that is not erased by then is due again.
    pub time: Duration,
    /// Time for which a job belongs to one invocation; longer than that can last.
    pub claim: Duration,
    /// Time after which an invocation that has read a job has ended, whatever its function.
    pub silent: Duration,
}

impl EraseLimits {
    pub const fn of(silent: Duration) -> Self {
        let (time, claim) = (TIMEOUT.saturating_sub(Duration::from_secs(30)), TIMEOUT.saturating_add(LEASE_MARGIN));
        Self { jobs: 100, time, claim, silent }
    }
}

/// What an invocation has erased.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Erased {
    pub jobs: u64,
    pub objects: u64,
    /// Jobs that could not be erased; they are due again later.
    pub failed: u64,
}

impl Eraser {
    /// Erases the jobs that are due, the longest due first. Returns also the last failure.
    pub async fn erase_due(&self) -> (Erased, Option<PortError>) {
        let ends_at = self.clock.now() + self.limits.time;
        let (mut erased, mut failure) = (Erased::default(), None);
        while self.clock.now() < ends_at {
            let due = match self.jobs.due(ERASE_SHARD, self.clock.now(), self.limits.jobs).await {
                Ok(due) if due.is_empty() => break,
                Ok(due) => due,
                Err(error) => return (erased, Some(error)),
            };
            let mut claimed = false;
            for due in due {
                if self.clock.now() >= ends_at {
                    break;
                }
                let ours = match self.claim(due).await {
                    Ok(None) => continue,
                    Ok(Some(seen)) => {
                        claimed = true;
                        match seen.deleted_at {
                            Some(_) => self.erase(&seen, ends_at, &mut erased).await,
                            None => Ok(()),
                        }
                    }
                    Err(error) => Err(error),
                };
                if let Err(error) = ours {
                    erased.failed += 1;
                    tracing::warn!(job.id = %due.job, error = &error as &dyn std::error::Error, "job not erased");
                    failure = Some(error);
                }
            }
            // The index may lag behind, and show what is claimed or erased. Or nothing can be written now.
            if !claimed {
                break;
            }
        }
        (erased, failure)
    }

    /// Claims a deleted job, or deletes one that has expired. Returns it as it was seen, unless another invocation was
    /// faster.
    async fn claim(&self, due: Due) -> Result<Option<Job>, PortError> {
        let now = self.clock.now();
        let claimed_until = now + self.limits.claim;
        let job = match self.jobs.job(due.job).await {
            Err(PortError::NotFound) => return Ok(None),
            Err(error @ PortError::Invalid { .. }) => {
                // An unreadable row must not be the first one each time.
                self.jobs.put_off(due, claimed_until).await.ok();
                return Err(error);
            }
            job => job?,
        };
        let claim = |job: &Job| match job.deleted_at {
            Some(_) => job.claim(due.at, claimed_until, job.recoveries),
            None => job.delete(now, self.limits.silent).filter(|_| job.is_gone(now)),
        };
        let is_ours = update_job(&*self.jobs, &job, claim).await?.done().is_ok();
        Ok(is_ours.then_some(job))
    }

    /// Erases a job. What is left when time is up is erased when the claim is over.
    async fn erase(&self, job: &Job, ends_at: Timestamp, erased: &mut Erased) -> Result<(), PortError> {
        let objects = keys::of_job(job.job_guid);
        while self.clock.now() < ends_at {
            match self.objects.erase_objects(&objects).await? {
                0 => break,
                more => erased.objects += more as u64,
            }
        }
        while self.clock.now() < ends_at {
            if self.jobs.erase_rows(job.job_guid).await? {
                erased.jobs += 1;
                tracing::info!(job.id = %job.job_guid, "job erased");
                break;
            }
        }
        Ok(())
    }
}
