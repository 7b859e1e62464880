//! Ending an attempt: its counts are audited, its results composed, its final status follows from what stopped it, and one
//! transaction writes all of that and gives the slots back.
//!
//! Composing may take several invocations: each stores how far it is, names that in the job row, which gives the lease
//! back, and sends the message anew. If it dies before, the message comes back, and the composition goes on from what
//! was named last.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::job::{Job, Lease, Stop, StopCode};
use rowmill_core::model::messages::CompletionMessage;
use rowmill_core::model::results::{Manifest, Results};
use rowmill_core::model::spec::Spec;
use rowmill_core::model::states::Status;
use rowmill_core::model::tally::{Counts, Totals};
use rowmill_core::ports::{Clock, Completion, Entropy, JobStore, Leased, PortError, Queue, WriteLost};
use rowmill_core::progress::job_view;

use crate::compose::{Composed, Composer, Composition};

/// How many tallies the audit reads at once.
const AUDIT_TALLIES: u32 = 1000;

/// How often the lease is asked for while another run holds it, and how long after each refusal. The other run is most
/// likely about to end the job.
const LEASE_TRIES: u32 = 20;

/// See [`LEASE_TRIES`].
const LEASE_WAIT: Duration = Duration::from_millis(100);

/// How long an invocation waits before each further try where a store did not answer. The next delivery is minutes away, and
/// what was composed since the last pause would be composed once more there too.
const UNAVAILABLE_WAITS: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

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
    /// What composes the results.
    pub composer: Composer,
    /// Where a composition that ran out of time goes on.
    pub completions: Arc<dyn Queue<CompletionMessage>>,
    /// How long before the invocation's time limit a composition is handed over to the next invocation.
    pub margin: Duration,
    /// How long the lease is held for; longer than an invocation can last.
    pub lease: Duration,
    /// How long a job is kept after its end.
    pub retention: Duration,
}

/// Whose try it is, and what time it has.
#[derive(Clone, Copy)]
pub struct InvocationSlot {
    /// The invocation's run, which holds the lease.
    pub run: RunId,
    /// When a composition is handed over to the next invocation.
    pub time_limit: Timestamp,
    /// Whether an earlier try of the invocation failed, so that it has not all of the time there is.
    pub is_retry: bool,
}

/// The waits of an invocation between tries of something, before a limit.
struct Retries<'a> {
    clock: &'a dyn Clock,
    job_guid: JobGuid,
    limit: Timestamp,
    waits: std::array::IntoIter<Duration, 5>,
}

impl Retries<'_> {
    /// Waits for the next try after this error; `false` at once where there is none left.
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

/// How a delivery ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionEnd {
    /// The job has ended like this, now.
    Ended(Status),
    /// Time was up before the results were composed; a message to go on is on its way.
    Continued,
    /// Nothing to do here: the job is gone or past, or is not complete.
    NotOurs,
}

impl Completer {
    /// Ends the attempt of a message, if it is complete and has not been ended.
    ///
    /// # Errors
    /// A port that is unavailable: deliver the message again.
    pub async fn complete(&self, message: &CompletionMessage, deadline: Timestamp) -> Result<CompletionEnd, PortError> {
        let run = self.entropy.run_id();
        let mut slot = InvocationSlot { run, time_limit: deadline - self.margin, is_retry: false };
        let mut retries = self.retries(message.job_guid, slot.time_limit);
        loop {
            let error = match self.try_to_complete(message, slot).await {
                Ok(Some(end)) => return Ok(end),
                // Not to be acknowledged: this may be the same message that the other run was given, and it may have died.
                Ok(None) => return Err(PortError::unavailable("taking the lease", "another run holds it")),
                Err(error) => error,
            };
            if !retries.wait(&error).await {
                // Whoever gets the message next need not wait for the lease to run out.
                self.jobs.release(message.job_guid, run).await.ok();
                return Err(error);
            }
            slot.is_retry = true;
        }
    }

    fn retries(&self, job_guid: JobGuid, limit: Timestamp) -> Retries<'_> {
        Retries { clock: &*self.clock, job_guid, limit, waits: UNAVAILABLE_WAITS.into_iter() }
    }

    /// One try, under the lease, which the run keeps where it fails; none where another run holds it.
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
            let now = self.clock.now();
            let lease = Lease { holder: slot.run, until: now + self.lease };
            match self.jobs.lease(message.job_guid, message.attempt, lease, now).await? {
                Leased::Refused(job) if job.is_past(message.attempt) => return Ok(Some(CompletionEnd::NotOurs)),
                Leased::Refused(_) => self.clock.sleep(LEASE_WAIT).await,
                Leased::Taken(job) => return self.end(job, &totals, slot).await.map(Some),
            }
        }
        Ok(None)
    }

    async fn end(&self, job: Job, totals: &Totals, slot: InvocationSlot) -> Result<CompletionEnd, PortError> {
        let spec = self.jobs.spec(job.job_guid).await?;
        let Some(job) = self.check_tolerance(job, &spec, totals).await? else { return Ok(CompletionEnd::NotOurs) };
        let Some(mut job) = self.audit(job, totals).await? else { return Ok(CompletionEnd::NotOurs) };
        let counts = job.merged(totals.counts);
        // Of this try alone: what an earlier one wrote may have been named by a write whose reply was lost.
        let name = self.entropy.run_id();
        let composition = match self.composer.compose(&job, &spec, counts, name, slot).await? {
            Composed::Whole(composition) => composition,
            Composed::OutOfTime(composition, tail) => {
                return self.hand_over(&job, slot, &composition, tail.into()).await;
            }
        };
        let results = Results { attempt: job.attempt, files: composition.files_of, manifest: name };
        for _ in 0..TRIES {
            let ended = Completion::of(&job, totals.counts, Some(results), self.clock.now(), self.retention);
            let Some(completion) = ended else { return Ok(CompletionEnd::NotOurs) };
            // Before the row that says where it is. A job that is stopped in between has it written anew.
            self.put_manifest(&completion, &results, &composition).await?;
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

    /// Time is up. The composition is stored, then named in the row, which gives the lease back; only then the message to
    /// go on is sent, so that whoever receives it can begin.
    async fn hand_over(
        &self,
        job: &Job,
        slot: InvocationSlot,
        composition: &Composition,
        tail: Bytes,
    ) -> Result<CompletionEnd, PortError> {
        let state = self.entropy.run_id();
        let mut retries = self.retries(job.job_guid, slot.time_limit + self.margin / 2);
        loop {
            match self.try_to_hand_over(job, slot.run, state, composition, tail.clone()).await {
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
        tail: Bytes,
    ) -> Result<CompletionEnd, PortError> {
        self.composer.store(job, state, composition, tail).await?;
        let paused = self.jobs.pause_composition(job.job_guid, job.attempt, run, state, self.clock.now()).await;
        match paused {
            Ok(()) => {}
            // Named by this very write, whose reply was lost: the message must still leave.
            Err(WriteLost::Condition(now)) if now.composing == Some(state) && !now.is_past(job.attempt) => {}
            Err(WriteLost::Condition(_)) => return Ok(CompletionEnd::NotOurs),
            Err(WriteLost::Port(error)) => return Err(error),
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
    ) -> Result<(), PortError> {
        let invalid = |error| PortError::invalid("writing the manifest", error);
        let manifest = Manifest {
            schema_version: 1,
            job: serde_json::to_value(job_view::of(&completion.job(), None)).map_err(invalid)?,
            files: composition.files.clone(),
            left_out: composition.left_out.clone(),
        };
        let json = serde_json::to_vec_pretty(&manifest).map_err(invalid)?;
        let key = results.manifest_key(completion.seen.job_guid);
        self.composer.objects.put(&key, "application/json", json.into(), None).await?;
        Ok(())
    }

    /// Whether more items failed than the job bears: whoever committed the last of them may have died before it looked.
    async fn check_tolerance(&self, job: Job, spec: &Spec, totals: &Totals) -> Result<Option<Job>, PortError> {
        if job.attempt > 1 || job.stop.is_some() {
            return Ok(Some(job));
        }
        match spec.tolerance.is_some_and(|tolerance| totals.counts.exceed(&tolerance)) {
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
