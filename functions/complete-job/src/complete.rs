//! Ending an attempt: its counts are audited, its final status follows from what stopped it, and one transaction writes
//! all of that and gives the slots back.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::job::{Job, Lease, Stop, StopCode};
use rowmill_core::messages::CompletionMessage;
use rowmill_core::ports::{Clock, Completion, Entropy, JobStore, Leased, PortError, WriteLost};
use rowmill_core::states::Status;
use rowmill_core::tally::{Counts, Totals};

/// How many tallies the audit reads at once.
const AUDIT_TALLIES: u32 = 1000;

/// How often the lease is asked for while another run holds it, and how long after each refusal. The other run is most
/// likely about to end the job.
const LEASE_TRIES: u32 = 20;

/// See [`LEASE_TRIES`].
const LEASE_WAIT: Duration = Duration::from_millis(100);

/// How often a completion starts over because the job was stopped meanwhile. A stop is set once, so twice is enough.
const TRIES: usize = 3;

/// The use case and the ports it works through.
pub struct Completer {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names for runs.
    pub entropy: Arc<dyn Entropy>,
    /// How long the lease is held for; longer than an invocation can last.
    pub lease: Duration,
    /// How long a job is kept after its end.
    pub retention: Duration,
}

/// How a delivery ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionEnd {
    /// The job has ended like this, now.
    Ended(Status),
    /// Nothing to do here: the job is gone or past, or is not complete.
    NotOurs,
}

impl Completer {
    /// Ends the attempt of a message, if it is complete and has not been ended.
    ///
    /// # Errors
    /// A port that is unavailable: deliver the message again.
    pub async fn complete(&self, message: &CompletionMessage) -> Result<CompletionEnd, PortError> {
        let job = match self.jobs.job(message.job_guid).await {
            Err(PortError::NotFound) => return Ok(CompletionEnd::NotOurs),
            job => job?,
        };
        if job.is_past(message.attempt) || !job.split.done {
            return Ok(CompletionEnd::NotOurs);
        }
        let totals = self.jobs.totals(message.job_guid, message.attempt).await?;
        if !totals.is_complete() {
            return Ok(CompletionEnd::NotOurs);
        }
        let run = self.entropy.run_id();
        for _ in 0..LEASE_TRIES {
            let now = self.clock.now();
            let lease = Lease { holder: run, until: now + self.lease };
            match self.jobs.lease(message.job_guid, message.attempt, lease, now).await? {
                Leased::Refused(job) if job.is_past(message.attempt) => return Ok(CompletionEnd::NotOurs),
                Leased::Refused(_) => self.clock.sleep(LEASE_WAIT).await,
                Leased::Taken(job) => {
                    let end = self.end(job, &totals).await;
                    if end.is_err() {
                        // Whoever gets the message next need not wait for the lease to run out.
                        self.jobs.release(message.job_guid, run).await.ok();
                    }
                    return end;
                }
            }
        }
        // Not to be acknowledged: this may be the same message that the other run was given, and it may have died.
        Err(PortError::unavailable("taking the lease", "another run holds it"))
    }

    async fn end(&self, job: Job, totals: &Totals) -> Result<CompletionEnd, PortError> {
        let Some(job) = self.check_tolerance(job, totals).await? else { return Ok(CompletionEnd::NotOurs) };
        let Some(mut job) = self.audit(job, totals).await? else { return Ok(CompletionEnd::NotOurs) };
        for _ in 0..TRIES {
            let ended = Completion::of(&job, totals.counts, self.clock.now(), self.retention);
            let Some(completion) = ended else { return Ok(CompletionEnd::NotOurs) };
            match self.jobs.complete(&completion).await {
                Ok(()) => return Ok(CompletionEnd::Ended(completion.status)),
                // Our own transaction with its reply lost, or somebody else's: it has ended either way.
                Err(WriteLost::Condition(now)) if now.is_past(job.attempt) => return Ok(CompletionEnd::NotOurs),
                // Stopped meanwhile: end it as that says.
                Err(WriteLost::Condition(now)) => job = *now,
                Err(WriteLost::Port(error)) => return Err(error),
            }
        }
        Err(PortError::unavailable("ending the job", "its row keeps changing"))
    }

    /// Whether more items failed than the job bears: whoever committed the last of them may have died before it looked.
    async fn check_tolerance(&self, job: Job, totals: &Totals) -> Result<Option<Job>, PortError> {
        if job.attempt > 1 || job.stop.is_some() {
            return Ok(Some(job));
        }
        let tolerance = self.jobs.spec(job.job_guid).await?.tolerance;
        match tolerance.is_some_and(|tolerance| tolerance.is_exceeded(totals.counts)) {
            true => self.stop(&job, Stop::tolerance_exceeded(totals.counts, self.clock.now())).await,
            false => Ok(Some(job)),
        }
    }

    /// Stops the attempt; none where it has ended meanwhile, by a run that took this one for dead.
    async fn stop(&self, job: &Job, stop: Stop) -> Result<Option<Job>, PortError> {
        Ok(self.jobs.stop(job.job_guid, job.attempt, &stop).await?.of_attempt(job.attempt))
    }

    /// Adds everything up again: the tallies must give the totals, and the totals the items dispatched. Should they ever
    /// not, the job ends as failed and says so, rather than with counts that cannot be trusted.
    async fn audit(&self, job: Job, totals: &Totals) -> Result<Option<Job>, PortError> {
        let (mut items, mut counts, mut first) = (0, Counts::default(), 0);
        while first < job.split.tallies {
            let next = first.saturating_add(AUDIT_TALLIES).min(job.split.tallies);
            for tally in self.jobs.tallies(job.job_guid, job.attempt, first..next).await? {
                items += tally.items;
                counts += tally.counts;
            }
            first = next;
        }
        let dispatched = job.items_dispatched();
        if (items, counts) == (totals.items, totals.counts) && items == dispatched && counts.sum() == items {
            return Ok(Some(job));
        }
        tracing::error!(job.id = %job.job_guid, items, ?counts, totals = ?totals.counts, dispatched, "audit failed");
        let message = "the job's counters do not add up; please report this";
        self.stop(&job, Stop::because(StopCode::AuditFailed, message, self.clock.now())).await
    }
}
