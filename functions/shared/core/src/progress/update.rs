//! Carrying out a transition of a job: apply it, write, and again on the newer row if another write was first.

use std::time::Duration;

use jiff::Timestamp;

use crate::items::input::InputError;
use crate::model::cost::Usage;
use crate::model::ids::RunId;
use crate::model::job::{Job, Lease, Stop, StopCode};
use crate::model::messages::ChunkMessage;
use crate::model::tally::{Counts, Tally};
use crate::ports::{Clock, Completion, JobStore, PortError, UpdateAnswer, WriteLost};

/// Maximum number of writes of a transition if another write is first each time. One of those who write at the same
/// time succeeds each time, so more of them would have to write the row at once.
const TRIES: usize = 100;

/// Result of a transition, with the current job.
#[derive(Clone, PartialEq, Debug)]
pub enum Updated {
    Now(Job),
    /// It was written before, or there is nothing to write.
    Before(Job),
    /// It does not start from this job, or the job is in another attempt.
    Refused(Job),
}

impl Updated {
    /// The job, if the transition has taken effect.
    ///
    /// # Errors
    /// The job that it does not start from.
    pub fn done(self) -> Result<Job, Box<Job>> {
        match self {
            Self::Now(job) | Self::Before(job) => Ok(job),
            Self::Refused(job) => Err(Box::new(job)),
        }
    }

    pub fn job(self) -> Job {
        let (Self::Now(job) | Self::Before(job) | Self::Refused(job)) = self;
        job
    }

    /// The current job, if it is still at this attempt and the attempt has not ended.
    pub fn of_attempt(self, attempt: u32) -> Option<Job> {
        Some(self.job()).filter(|job| !job.is_past(attempt))
    }
}

/// Carries out a transition of the present attempt of a job. If it takes slots and there are none, the job
/// [waits for them](Job::await_slots) instead, and that is the result.
///
/// # Errors
/// `NotFound` if the job is gone; `Unavailable`.
pub async fn update_job(
    jobs: &dyn JobStore,
    job: &Job,
    transition: impl Fn(&Job) -> Option<Job> + Send + Sync,
) -> Result<Updated, PortError> {
    update_job_ahead(jobs, job, Usage::NONE, transition).await
}

/// As [`update_job`]; the write pays for what the caller uses next, too.
pub async fn update_job_ahead(
    jobs: &dyn JobStore,
    job: &Job,
    ahead: Usage,
    transition: impl Fn(&Job) -> Option<Job> + Send + Sync,
) -> Result<Updated, PortError> {
    let (mut seen, mut is_current, mut is_full) = (job.clone(), false, false);
    let next_of = |seen: &Job, is_full: bool| {
        let next = transition(seen).filter(|_| seen.attempt == job.attempt)?;
        let is_refused = is_full && next.has_shared_slots() && !seen.has_shared_slots();
        Some(if is_refused { seen.await_slots(&next) } else { next })
    };
    for _ in 0..TRIES {
        let next = match next_of(&seen, is_full) {
            Some(next) if next != seen => next,
            // The row in hand may be an old one.
            _ if !is_current => {
                (seen, is_current) = (jobs.job(job.job_guid).await?, true);
                continue;
            }
            Some(_) => return Ok(Updated::Before(seen)),
            None => return Ok(Updated::Refused(seen)),
        };
        match jobs.update(&seen, &next, ahead).await? {
            UpdateAnswer::Written(job) => return Ok(Updated::Now(job)),
            // The attempt may have ended since, and the next one begun.
            UpdateAnswer::WrittenBefore(now) if now.attempt != job.attempt => return Ok(Updated::Refused(now)),
            UpdateAnswer::WrittenBefore(now) => return Ok(Updated::Before(now)),
            UpdateAnswer::Refused(now) => (seen, is_current) = (now, true),
            UpdateAnswer::Full(_) => is_full = true,
        }
    }
    Err(PortError::unavailable("updating the job", "its row keeps changing"))
}

/// Takes the lease of a job's present attempt for the run `holder`, or extends it. It expires after `duration`, which
/// must be longer than the invocation can run: see [`LEASE_MARGIN`](crate::model::job::LEASE_MARGIN).
pub async fn take_lease(
    jobs: &dyn JobStore,
    clock: &dyn Clock,
    job: &Job,
    holder: RunId,
    duration: Duration,
) -> Result<Updated, PortError> {
    let now = clock.now();
    let lease = Lease { holder, until: now + duration };
    Ok(match update_job(jobs, job, |job| job.take(lease, now)).await? {
        // It was taken, has expired, and another run has taken it.
        Updated::Before(job) if !job.is_held_by(holder) => Updated::Refused(job),
        updated => updated,
    })
}

/// Ends a job, unless another write was first. Returns whether it has ended.
pub async fn end_job(jobs: &dyn JobStore, end: &Completion) -> Result<bool, PortError> {
    match jobs.complete(end).await {
        Ok(()) => Ok(true),
        Err(WriteLost::Condition(_)) => Ok(false),
        Err(WriteLost::Port(error)) => Err(error),
    }
}

/// Gives the lease of a job back, if this run still holds it.
pub async fn release_lease(jobs: &dyn JobStore, job: &Job, holder: RunId) -> Result<(), PortError> {
    update_job(jobs, job, |job| Some(job.release(holder))).await.map(drop)
}

/// Stops the current attempt of a job unless it is already stopped. Returns the current job, or `None` if another run,
/// which assumed this one dead, has ended the attempt meanwhile.
pub async fn stop_attempt(jobs: &dyn JobStore, job: &Job, stop: &Stop) -> Result<Option<Job>, PortError> {
    Ok(update_job(jobs, job, |job| job.stop(stop)).await?.of_attempt(job.attempt))
}

/// Stops an attempt whose deadline has passed. If none of its chunks has begun, it lacked capacity and not time.
pub async fn stop_overdue(jobs: &dyn JobStore, job: &Job, now: Timestamp) -> Result<Updated, PortError> {
    update_job(jobs, job, |job| job.stop_overdue(now)).await
}

/// Stops an attempt if more items have failed than it tolerates, as the commit that left this tally shows. One read is
/// enough: it counts the closed tallies and this one. Other open tallies are counted when they close. A redrive is not
/// checked: its items had failed before.
pub async fn stop_after_commit(jobs: &dyn JobStore, job: &Job, tally: &Tally, now: Timestamp) -> Result<(), PortError> {
    if job.is_past(1) || tally.attempt > 1 || job.tolerance.is_none() {
        return Ok(());
    }
    let totals = jobs.totals(job.job_guid, 1).await?;
    let open = if totals.closed.contains(&tally.number) { Counts::default() } else { tally.counts };
    stop_exceeded(jobs, job, totals.counts + open, now).await.map(drop)
}

/// Why a job must stop whose chunk of this message cannot be read: its other chunks need not find out.
pub fn stop_for_input(error: &InputError, message: &ChunkMessage, now: Timestamp) -> Option<Stop> {
    let place = Some(message.chunk.start()).filter(|_| message.address.attempt == 1);
    match error {
        InputError::SourceChanged(how) => Some(Stop::source_changed(how, place, now)),
        InputError::OtherItems { .. } => {
            let said =
                "rows are read differently than they were split; please report this error, with the file if possible";
            let (row, offset) = place.map(|place| (place.row, place.offset)).unzip();
            Some(Stop { row, offset, ..Stop::because(StopCode::AuditFailed, said, now) })
        }
        InputError::Port(_) => None,
    }
}

/// Stops an attempt if these counts of it exceed the job's tolerance. Returns as [`stop_attempt`].
pub async fn stop_exceeded(
    jobs: &dyn JobStore,
    job: &Job,
    counts: Counts,
    now: Timestamp,
) -> Result<Option<Job>, PortError> {
    match !job.is_stopped() && job.is_exceeded_by(counts) {
        true => Ok(update_job(jobs, job, |job| job.stop_exceeded(counts, now)).await?.of_attempt(job.attempt)),
        false => Ok(Some(job.clone())),
    }
}
