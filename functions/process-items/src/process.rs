//! From a chunk's message to its commit.
//!
//! A chunk counts once: its commit puts its mark on the tally on condition that there is none. Everything before the
//! commit may happen any number of times; whatever a run wrote that did not win is never read.

use std::sync::Arc;

use jiff::Timestamp;
use rowmill_core::ids::RunId;
use rowmill_core::job::{Stop, StopCode};
use rowmill_core::messages::{ChunkMessage, CompletionMessage};
use rowmill_core::ports::{Clock, Committed, Entropy, JobStore, Objects, PortError, Queue};
use rowmill_core::segment;
use rowmill_core::tally::{Commit, Counts, Mark, MarkKind, Tally};
use rowmill_core::text::{Chunk, ChunkMode, Position};

use crate::prepared::PreparedJobs;
use crate::run::{ChunkOutcome, ChunkRun, RunError, RunLimits, too_long};
use crate::watch::JobWatch;

/// The use case and the ports it works through.
pub struct ChunkProcessor {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// The files, and where failed items go.
    pub objects: Arc<dyn Objects>,
    /// Where an attempt whose last tally is closed is announced.
    pub completions: Arc<dyn Queue<CompletionMessage>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names for runs.
    pub entropy: Arc<dyn Entropy>,
    /// The specs and processors of the jobs.
    pub prepared: PreparedJobs,
    /// How a run is bounded.
    pub limits: RunLimits,
}

/// How a delivery ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkEnd {
    /// This run's commit counts.
    Committed(Counts),
    /// The chunk had been committed before.
    Repeated,
    /// The job is gone, has ended, or goes by another attempt.
    Past,
}

impl ChunkProcessor {
    /// Processes and commits the chunk of a message, unless that has been done.
    ///
    /// # Errors
    /// The chunk is to be delivered again.
    pub async fn process(
        &self,
        message: &ChunkMessage,
        redelivered: bool,
        deadline: Timestamp,
        watch: &JobWatch,
    ) -> Result<ChunkEnd, RunError> {
        let job = match watch.job(message.job_guid).await {
            Err(PortError::NotFound) => return Ok(ChunkEnd::Past),
            job => job?,
        };
        if job.is_past(message.address.attempt) {
            return Ok(ChunkEnd::Past);
        }
        if redelivered && let Some(tally) = self.committed_before(message).await? {
            self.close(message, &tally).await?;
            return Ok(ChunkEnd::Repeated);
        }
        let run = self.entropy.run_id();
        if job.stop.is_some() {
            return self.skip(message, run).await;
        }
        match self.run(message, deadline, watch).await {
            Ok(outcome) => self.commit_outcome(message, run, outcome).await,
            Err(RunError::SourceChanged(how)) => {
                let stop = Stop::source_changed(how, Some(place(&message.chunk)), self.clock.now());
                self.stop_and_skip(message, run, &stop).await
            }
            Err(error @ RunError::OtherItems { .. }) => {
                tracing::error!(job.id = %message.job_guid, chunk.row = message.chunk.first_row, %error, "misread");
                self.stop_and_skip(message, run, &self.misread(message)).await
            }
            Err(error) => Err(error),
        }
    }

    /// The tally, if it says that this chunk is committed.
    async fn committed_before(&self, message: &ChunkMessage) -> Result<Option<Tally>, PortError> {
        let address = message.address;
        let tally = self.jobs.tally(message.job_guid, address.attempt, address.tally).await?;
        Ok(tally.mark(address.index).is_some().then_some(tally))
    }

    async fn run(
        &self,
        message: &ChunkMessage,
        deadline: Timestamp,
        watch: &JobWatch,
    ) -> Result<ChunkOutcome, RunError> {
        let prepared = self.prepared.get(message.job_guid).await?;
        let chunk = &message.chunk;
        if chunk.mode == ChunkMode::TooLong {
            return Ok(too_long(chunk, prepared.spec.limits.max_record_bytes));
        }
        let file = &prepared.spec.file;
        let range = chunk.offset..chunk.offset + chunk.length;
        let bytes = self.objects.read_range(&file.key, &file.etag, range).await.map_err(|error| match error {
            PortError::NotFound => RunError::SourceChanged("is gone"),
            PortError::Changed => RunError::SourceChanged("was replaced"),
            error => error.into(),
        })?;
        let run = ChunkRun {
            job_guid: message.job_guid,
            prepared: &prepared,
            chunk,
            deadline,
            watch,
            clock: &*self.clock,
            entropy: &*self.entropy,
            limits: self.limits,
        };
        run.run(&bytes).await
    }

    async fn commit_outcome(
        &self,
        message: &ChunkMessage,
        run: RunId,
        outcome: ChunkOutcome,
    ) -> Result<ChunkEnd, RunError> {
        if !outcome.failed.is_empty() {
            // Before the commit: once a mark says that there are objects, they are there.
            let key = segment::failed_items_key(message.job_guid, message.address, run);
            let bytes = segment::write_segment(&outcome.failed)
                .map_err(|error| PortError::invalid("writing the failed items", error))?;
            self.objects.put(&key, "application/x-ndjson", bytes.into(), None).await?;
        }
        let kind = match (outcome.stopped, outcome.failed.is_empty()) {
            (_, false) => MarkKind::HasObjects,
            (true, true) => MarkKind::Stopped,
            (false, true) => MarkKind::Clean,
        };
        self.commit(message, Mark { kind, run }, outcome.counts).await
    }

    /// The job was stopped before the chunk was begun.
    async fn skip(&self, message: &ChunkMessage, run: RunId) -> Result<ChunkEnd, RunError> {
        let counts = Counts::all_skipped(message.chunk.items.into());
        self.commit(message, Mark { kind: MarkKind::Skipped, run }, counts).await
    }

    /// The job cannot go on: it is stopped, and only then is anything skipped.
    async fn stop_and_skip(&self, message: &ChunkMessage, run: RunId, stop: &Stop) -> Result<ChunkEnd, RunError> {
        self.jobs.stop(message.job_guid, message.address.attempt, stop).await?;
        self.skip(message, run).await
    }

    fn misread(&self, message: &ChunkMessage) -> Stop {
        let Position { offset, row } = place(&message.chunk);
        Stop {
            code: StopCode::AuditFailed,
            message: "rows are read otherwise than they were cut; please report this, with the file if you can".into(),
            row: Some(row),
            offset: Some(offset),
            at: self.clock.now(),
        }
    }

    async fn commit(&self, message: &ChunkMessage, mark: Mark, counts: Counts) -> Result<ChunkEnd, RunError> {
        debug_assert_eq!(counts.sum(), u64::from(message.chunk.items));
        let commit = Commit { chunk: message.address, mark, counts, bytes: message.chunk.length, at: self.clock.now() };
        let committed = self.jobs.commit(message.job_guid, &commit).await?;
        self.close(message, committed.tally()).await?;
        Ok(match committed {
            Committed::Won(_) => ChunkEnd::Committed(counts),
            Committed::Lost(_) => ChunkEnd::Repeated,
        })
    }

    /// Whoever sees the tally closed folds it, and whoever sees all tallies folded says so: winner and loser alike, since
    /// the one who did it first may have died right after.
    async fn close(&self, message: &ChunkMessage, tally: &Tally) -> Result<(), PortError> {
        if !tally.is_closed() {
            return Ok(());
        }
        let totals = self.jobs.fold(message.job_guid, tally).await?;
        if totals.is_complete() {
            let (job_guid, owner) = (message.job_guid, message.owner.clone());
            let attempt = message.address.attempt;
            self.completions.send(&[CompletionMessage { job_guid, attempt, owner }]).await?;
        }
        Ok(())
    }
}

const fn place(chunk: &Chunk) -> Position {
    Position { offset: chunk.offset, row: chunk.first_row }
}
