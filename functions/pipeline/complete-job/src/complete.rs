//! Ends an attempt: audits its counts, composes its results, and derives its final status from its stop. One
//! transaction writes all of that and releases the admission slots.
//!
//! Composing may take several invocations. Each one stores the composition, names it in the job row (which releases the
//! lease), and sends the message again. If it dies before, the queue delivers its message again, and the next
//! invocation resumes the composition that was named last.
//!
//! The results of a job that has ended may have to be copied into an external bucket, see [`copy`](crate::copy).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_api::job::JobView;
use rowmill_core::model::changes::Changes;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, Stop, StopCode};
use rowmill_core::model::messages::CompletionMessage;
use rowmill_core::model::results::{Manifest, Results, ResultsTo};
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::{Counts, Totals};
use rowmill_core::ports::{Clock, Completion, Entropy, JobStore, PortError, Queue, WriteLost, found};
use rowmill_core::progress::update::{release_lease, stop_attempt, stop_exceeded, take_lease, update_job_ahead};

use crate::compose::{Composer, Composition};
use crate::copy::Copier;
use crate::limits::CompleteLimits;
use crate::slot::InvocationSlot;

/// Number of tallies the audit reads at once.
const AUDIT_TALLIES: u32 = 1000;

/// Maximum number of requests for the lease while another run holds it. The other run is probably about to end the job.
const LEASE_TRIES: u32 = 20;

/// The wait after each refusal, see [`LEASE_TRIES`].
const LEASE_WAIT: Duration = Duration::from_millis(100);

/// The waits of an invocation before it tries again after a store was unavailable. The next delivery is minutes away,
/// and would have to compose everything since the last hand-over again.
const UNAVAILABLE_WAITS: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// Maximum number of writes of the end, if the job is stopped meanwhile. A stop is set once: two tries do.
const TRIES: usize = 3;

/// The use case and the ports it works through.
pub struct Completer {
    pub jobs: Arc<dyn JobStore>,
    pub clock: Arc<dyn Clock>,
    /// Names for runs.
    pub entropy: Arc<dyn Entropy>,
    pub composer: Composer,
    pub copier: Copier,
    /// The queue that starts the next invocation of a composition or a copy that is handed over.
    pub completions: Arc<dyn Queue<CompletionMessage>>,
    pub limits: CompleteLimits,
}

/// The waits between the tries of one action, until a time limit.
struct Retries<'a> {
    clock: &'a dyn Clock,
    job_guid: JobGuid,
    limit: Timestamp,
    waits: std::array::IntoIter<Duration, 5>,
}

impl Retries<'_> {
    /// Waits for the next try after this error. `false` at once if no try is left, or if another try cannot help.
    async fn wait(&mut self, error: &PortError) -> bool {
        let is_passing = matches!(error, PortError::Unavailable { .. });
        let Some(wait) = self.waits.next().filter(|wait| is_passing && self.clock.now() + *wait < self.limit) else {
            return false;
        };
        tracing::warn!(job.id = %self.job_guid, error = error as &dyn std::error::Error, "tried again in {wait:?}");
        self.clock.sleep(wait).await;
        true
    }
}

/// Result of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionEnd {
    /// The job has ended now, with this status.
    Ended(Status),
    /// Time was up before the results were composed, or copied. A message for the next invocation is sent.
    Continued,
    /// Nothing to do: the job is gone or past this attempt, or the attempt is not complete.
    NotOurs,
}

impl Completer {
    /// Ends the attempt of a message, if it is complete and has not been ended.
    pub async fn complete(&self, message: &CompletionMessage, deadline: Timestamp) -> Result<CompletionEnd, PortError> {
        let run = self.entropy.run_id();
        let mut slot = InvocationSlot { run, time_limit: deadline - self.limits.margin(), is_retry: false };
        let mut retries = self.retries(message.job_guid, slot.time_limit);
        loop {
            let error = match self.try_to_end(message, slot).await {
                Ok(Some(end)) => return Ok(end),
                // Do not acknowledge: the other run may have received this same message, and may have died.
                Ok(None) => return Err(PortError::unavailable("taking the lease", "another run holds it")),
                Err(error) => error,
            };
            if !retries.wait(&error).await {
                // The next delivery need not wait until the lease expires.
                self.release(message.job_guid, run).await.ok();
                return Err(error);
            }
            slot.is_retry = true;
        }
    }

    async fn release(&self, job_guid: JobGuid, run: RunId) -> Result<(), PortError> {
        release_lease(&*self.jobs, &self.jobs.job(job_guid).await?, run).await
    }

    fn retries(&self, job_guid: JobGuid, limit: Timestamp) -> Retries<'_> {
        Retries { clock: &*self.clock, job_guid, limit, waits: UNAVAILABLE_WAITS.into_iter() }
    }

    /// One try to end the attempt, and to copy its results. `None` if another run holds the lease.
    async fn try_to_end(
        &self,
        message: &CompletionMessage,
        slot: InvocationSlot,
    ) -> Result<Option<CompletionEnd>, PortError> {
        match self.try_to_complete(message, slot).await? {
            // The run that has ended it may have died before the results were copied.
            Some(end @ CompletionEnd::NotOurs) => match found(self.jobs.job(message.job_guid).await)? {
                Some(job) => self.copied(&job, end, slot).await.map(Some),
                None => Ok(Some(end)),
            },
            end => Ok(end),
        }
    }

    /// One try under the lease. `None` if another run holds the lease. The run keeps the lease if the try fails.
    async fn try_to_complete(
        &self,
        message: &CompletionMessage,
        slot: InvocationSlot,
    ) -> Result<Option<CompletionEnd>, PortError> {
        let job = match self.jobs.job(message.job_guid).await {
            Err(PortError::NotFound) => return Ok(Some(CompletionEnd::NotOurs)),
            job => job?,
        };
        if job.is_past(message.attempt) || !job.split.done {
            return Ok(Some(CompletionEnd::NotOurs));
        }
        let totals = self.jobs.totals(message.job_guid, message.attempt).await?;
        if !totals.is_complete() {
            return Ok(Some(CompletionEnd::NotOurs));
        }
        for _ in 0..LEASE_TRIES {
            match take_lease(&*self.jobs, &*self.clock, &job, slot.run, self.limits.lease()).await?.done() {
                Err(job) if job.is_past(message.attempt) => return Ok(Some(CompletionEnd::NotOurs)),
                Err(_) => self.clock.sleep(LEASE_WAIT).await,
                Ok(job) => return self.end(job, &totals, slot).await.map(Some),
            }
        }
        Ok(None)
    }

    async fn end(&self, job: Job, totals: &Totals, slot: InvocationSlot) -> Result<CompletionEnd, PortError> {
        let spec = self.jobs.spec(job.job_guid).await?;
        // The run that committed the last failed item may have died before it checked.
        let stopped = stop_exceeded(&*self.jobs, &job, totals.counts, self.clock.now()).await?;
        let Some(job) = stopped else { return Ok(CompletionEnd::NotOurs) };
        let Some(mut job) = self.audit(job, totals).await? else { return Ok(CompletionEnd::NotOurs) };
        let counts = job.merged(totals.counts);
        // Each try has its own id: a write whose reply was lost may have named the files of an earlier try.
        let name = self.entropy.run_id();
        let composition = self.composer.compose(&job, &spec, counts, name, slot).await?;
        if !composition.is_whole() {
            return self.hand_over(&job, slot, &composition).await;
        }
        let results = Results { attempt: job.attempt, manifest: name, causes: composition.causes.counted() };
        for _ in 0..TRIES {
            let ended =
                Completion::of(&job, totals, Some(results.clone()), self.clock.now(), self.limits.jobs.retention);
            let Some(completion) = ended else { return Ok(CompletionEnd::NotOurs) };
            // Before the row that names it. If the job is stopped in between, it is written again.
            self.put_manifest(&completion, &results, &composition, &spec).await?;
            match self.jobs.complete(&completion).await {
                Ok(()) => {
                    let ended = CompletionEnd::Ended(completion.end.status());
                    return if spec.results_to.is_some() {
                        self.copied(&completion.job(), ended, slot).await
                    } else {
                        Ok(ended)
                    };
                }
                // Our own transaction, whose reply was lost, or another run's: the job has ended either way.
                Err(WriteLost::Condition(now)) if now.is_past(job.attempt) => return Ok(CompletionEnd::NotOurs),
                // The job was stopped in the meantime: end it as its stop says.
                Err(WriteLost::Condition(now)) => job = *now,
                Err(WriteLost::Port(error)) => return Err(error),
            }
        }
        Err(PortError::unavailable("ending the job", "its row keeps changing"))
    }

    /// Copies the results of a job that has ended, if that is wanted and time allows. This is its end then.
    async fn copied(&self, job: &Job, end: CompletionEnd, slot: InvocationSlot) -> Result<CompletionEnd, PortError> {
        let end_seen = job.end().filter(|_| job.deleted_at.is_none());
        let Some(results) = end_seen.and_then(|end| end.results.as_ref()) else { return Ok(end) };
        if self.copier.copy(job.job_guid, results, slot.time_limit).await? {
            return Ok(end);
        }
        self.completions.send(&[CompletionMessage::of(job)]).await?;
        Ok(CompletionEnd::Continued)
    }

    /// Time is up: stores the composition, names it in the row (which releases the lease), and only then sends the
    /// message, so that its receiver can take the lease.
    async fn hand_over(
        &self,
        job: &Job,
        slot: InvocationSlot,
        composition: &Composition,
    ) -> Result<CompletionEnd, PortError> {
        let state = self.entropy.run_id();
        let mut retries = self.retries(job.job_guid, slot.time_limit + self.limits.margin() / 2);
        loop {
            match self.try_to_hand_over(job, slot.run, state, composition).await {
                Err(error) if retries.wait(&error).await => {}
                end => return end,
            }
        }
    }

    async fn try_to_hand_over(
        &self,
        job: &Job,
        run: RunId,
        state: RunId,
        composition: &Composition,
    ) -> Result<CompletionEnd, PortError> {
        composition.store(&*self.composer.objects, job, state).await?;
        let now = self.clock.now();
        // The message to the next invocation follows.
        let ahead = Usage::NONE.with_sends(1);
        let hand_over = |job: &Job| job.hand_composition_over(run, state, now);
        let handed_over = update_job_ahead(&*self.jobs, job, ahead, hand_over).await?;
        // Also if this very write named it, but its reply was lost: the message must still be sent.
        if handed_over.done().map_or(true, |now| now.is_past(job.attempt)) {
            return Ok(CompletionEnd::NotOurs);
        }
        let next = CompletionMessage { composing: Some(state), ..CompletionMessage::of(job) };
        self.completions.send(&[next]).await?;
        Ok(CompletionEnd::Continued)
    }

    async fn put_manifest(
        &self,
        completion: &Completion,
        results: &Results,
        composition: &Composition,
        spec: &Spec,
    ) -> Result<(), PortError> {
        let place = |to: &ResultsTo| to.place(&spec.job_type, spec.job_guid, results.attempt);
        let copied_to = spec.results_to.as_ref().map(place);
        let invalid = |error| PortError::invalid("writing the manifest", error);
        let (causes, other_causes) = composition.causes.ranked();
        let manifest = Manifest {
            schema_version: 1,
            job: serde_json::to_value(JobView::of(&completion.job(), None)).map_err(invalid)?,
            files: composition.files.clone(),
            left_out: composition.left_out.clone(),
            causes,
            other_causes,
            changes: composition.changes.as_ref().map(Changes::ranked),
            copied_to,
        };
        let json = serde_json::to_vec_pretty(&manifest).map_err(invalid)?;
        let key = results.manifest_key(completion.seen.job_guid);
        self.composer.objects.put(&key, "application/json", json.into(), None).await?;
        Ok(())
    }

    /// Adds everything up again: the tallies must sum to the totals, and the totals to the items dispatched. Otherwise
    /// the job ends as failed, because its counts cannot be trusted.
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
        stop_attempt(&*self.jobs, &job, &Stop::because(StopCode::AuditFailed, message, self.clock.now())).await
    }
}
