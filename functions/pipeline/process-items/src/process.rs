//! Processes a chunk, from its message to its commit.
//!
//! A chunk counts once: its commit sets its mark on the tally, on the condition that there is none. Everything before
//! the commit may happen any number of times. Objects of a run that did not win are never read. A run whose time is up
//! before its chunk is done moves the chunk's checkpoint on, and sends a message for the next run.

use std::sync::Arc;

use futures::future::join;
use jiff::Timestamp;
use rowmill_core::items::input::{InputError, InputItem, read_input};
use rowmill_core::items::run_output;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::{Job, Stop, StopCode};
use rowmill_core::model::lanes::{JobTypeLimits, is_astray};
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::run_output::RunOutput;
use rowmill_core::model::tally::{ChunkAddress, Committed, Counts, Mark, MarkKind, Tally};
use rowmill_core::ports::{
    BatchRunner, CheckpointMoved, Clock, Deliveries, Entropy, JobStore, Objects, PortError, Queue,
};
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::breaker::BreakerSteps;
use rowmill_core::progress::update::{stop_attempt, stop_overdue};
use rowmill_core::text::Chunk;

use crate::delivery::Delivery;
use crate::good_runs::GoodRuns;
use crate::invocation::Invocation;
use crate::neighbours::SharedObjects;
use crate::prepared::{Prepared, PreparedJobs};
use crate::run::{ChunkRun, Progress, RunEnd, RunError, RunLimits};

/// The use case and the ports it works through.
pub struct ChunkProcessor {
    pub jobs: Arc<dyn JobStore>,
    /// The files and the run outputs.
    pub objects: Arc<dyn Objects>,
    /// The items queue, for a chunk whose run ran out of time.
    pub chunks: Arc<dyn Queue<ChunkMessage>>,
    pub isolated: Arc<dyn Queue<ChunkMessage>>,
    pub lane_deliveries: Arc<dyn Deliveries>,
    /// The shared steps: committing a chunk, closing a tally, ending the split.
    pub steps: JobSteps,
    pub clock: Arc<dyn Clock>,
    /// Names for runs.
    pub entropy: Arc<dyn Entropy>,
    pub batches: Arc<dyn BatchRunner>,
    /// Pauses a job whose target is down.
    pub breaker: BreakerSteps,
    /// The runs of this process that went well.
    pub good_runs: GoodRuns,
    pub prepared: PreparedJobs,
    pub limits: RunLimits,
    /// The limits that job types have of their own.
    pub type_limits: JobTypeLimits,
}

/// Result of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkEnd {
    /// This run's commit counts.
    Committed(Counts),
    /// The chunk had been committed before.
    Repeated,
    /// The chunk is done in part. A message for the next run is sent.
    Continued,
    /// The job is gone, has ended, or is in another attempt.
    Past,
    /// The job is paused. Its message is dropped: a resume has the chunk sent again.
    Paused,
    /// Its job type has lanes, and the message was received beside them. It is sent on one of them.
    Rerouted,
}

impl ChunkEnd {
    const fn of(committed: &Committed, counts: Counts) -> Self {
        if committed.is_won() { Self::Committed(counts) } else { Self::Repeated }
    }
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
        invocation: &Invocation,
    ) -> Result<ChunkEnd, RunError> {
        let (watch, seat) = (&invocation.watch, invocation.commits.seat(message));
        let shared = invocation.neighbours.take(message);
        let job = match watch.job(message.job_guid).await {
            Err(PortError::NotFound) => return Ok(ChunkEnd::Past),
            job => job?,
        };
        if let Some(end) = dropped(&job, message.address.attempt) {
            return Ok(end);
        }
        let mut checkpoint = Checkpoint::blank(message.address, self.clock.now());
        if redelivered || message.delivery_mode != DeliveryMode::Fresh {
            if let Some(tally) = self.steps.committer.committed(message.job_guid, message.address).await? {
                self.steps.committer.settle(message, &tally, redelivered).await?;
                return Ok(ChunkEnd::Repeated);
            }
            checkpoint = self.jobs.checkpoint(message.job_guid, message.address).await?.unwrap_or(checkpoint);
        }
        let (run, time_limit) = (self.entropy.run_id(), deadline - self.limits.margin);
        let began = self.clock.now();
        let delivery = Delivery { message, redelivered, run, began, time_limit, watch, seat, checkpoint, shared };
        if job.stop.is_some() {
            return self.skip(&delivery).await;
        }
        if self.clock.now() >= job.deadline_at {
            stop_overdue(&*self.jobs, &job, self.clock.now()).await?;
            return self.skip(&delivery).await;
        }
        if is_astray(&self.type_limits, &job.job_type, message) {
            return self.reroute(message, &job).await;
        }
        if job.first_chunk_at.is_none() {
            // Before any item begins: a job that is stopped for lack of capacity has processed none. Its spec is read meanwhile; if
            // that fails, the run finds out.
            let begin = watch.begin(message.job_guid, message.address.attempt);
            let (job, _) = join(begin, self.prepared.get(message.job_guid)).await;
            let job = job?;
            if let Some(end) = dropped(&job, message.address.attempt) {
                return Ok(end);
            }
            if job.stop.is_some() {
                return self.skip(&delivery).await;
            }
        }
        match self.run(&delivery).await {
            Err(RunError::Input(InputError::SourceChanged(how))) => {
                let place = Some(message.chunk.start()).filter(|_| job.redrive.is_none());
                self.stop_and_skip(&delivery, &Stop::source_changed(how, place, self.clock.now())).await
            }
            Err(RunError::Input(error @ InputError::OtherItems { .. })) => {
                tracing::error!(job.id = %message.job_guid, chunk.row = message.chunk.first_row, %error, "misread");
                self.stop_and_skip(&delivery, &misread(&job, &message.chunk, self.clock.now())).await
            }
            end => end,
        }
    }

    /// Sends a message on a lane of its job type. Its chunk does not run here.
    async fn reroute(&self, message: &ChunkMessage, job: &Job) -> Result<ChunkEnd, RunError> {
        let message = ChunkMessage { job_type: Some(job.job_type.clone()), ..message.clone() };
        match message.delivery_mode {
            DeliveryMode::Isolated => self.isolated.send(&[message]).await?,
            // It may have been delivered before.
            _ => self.chunks.send(&[ChunkMessage { delivery_mode: DeliveryMode::Recovered, ..message }]).await?,
        }
        Ok(ChunkEnd::Rerouted)
    }

    async fn run(&self, delivery: &Delivery<'_>) -> Result<ChunkEnd, RunError> {
        let message = delivery.message;
        if message.delivery_mode == DeliveryMode::Isolated {
            return self.run_isolated(delivery).await;
        }
        if delivery.checkpoint.isolated {
            // Its items never run beside other chunks.
            return self.go_on_isolated(message).await;
        }
        let prepared = self.prepared.get(message.job_guid).await?;
        let (mut items, mut progress) = self.load(delivery, &prepared).await?;
        let run = self.chunk_run(delivery, &prepared);
        match run.run(&mut items, &mut progress).await {
            Ok(RunEnd::Done) => {
                self.note_good_run(&prepared, &progress);
                self.commit_progress(delivery, &prepared, progress).await
            }
            Ok(RunEnd::Past) => Ok(ChunkEnd::Past),
            Ok(RunEnd::OutOfTime) => self.hand_over(delivery, progress).await,
            Err(RunError::Held { row }) => self.stop_held(delivery, &prepared, &items, progress, row).await,
            // Keep the finished prefix: save a checkpoint, start a fresh delivery count for the rest.
            Err(why @ (RunError::TryAgain(_) | RunError::StillFailing { .. }))
                if progress.done > delivery.checkpoint.done =>
            {
                tracing::warn!(job.id = %message.job_guid, chunk.row = message.chunk.first_row, %why, "chunk done in part");
                self.hand_over(delivery, progress).await
            }
            Err(RunError::StillFailing { open, error }) => self.still_failing(delivery, &prepared, open, error).await,
            Err(error) => Err(error),
        }
    }

    /// The chunk's items and their outcomes so far.
    pub(crate) async fn load(
        &self,
        delivery: &Delivery<'_>,
        prepared: &Prepared,
    ) -> Result<(Vec<InputItem>, Progress), RunError> {
        let objects = SharedObjects { objects: &*self.objects, shared: delivery.shared.as_deref() };
        let items = read_input(&objects, &prepared.spec, &prepared.columns, delivery.message).await?;
        let run_output =
            run_output::of_checkpoint(&*self.objects, delivery.message.job_guid, &delivery.checkpoint).await?;
        Ok((items, Progress::of(&delivery.checkpoint, run_output)))
    }

    pub(crate) fn chunk_run<'a>(&'a self, delivery: &'a Delivery<'a>, prepared: &'a Prepared) -> ChunkRun<'a> {
        ChunkRun {
            job_guid: delivery.message.job_guid,
            attempt: delivery.message.address.attempt,
            prepared,
            time_limit: delivery.time_limit,
            batches: &*self.batches,
            watch: delivery.watch,
            clock: &*self.clock,
            entropy: &*self.entropy,
            limits: self.limits,
            items_at_once: self.type_limits.of(&prepared.spec.job_type).items_at_once,
        }
    }

    /// Hands the chunk over to the next run: the checkpoint records what is done.
    async fn hand_over(&self, delivery: &Delivery<'_>, progress: Progress) -> Result<ChunkEnd, RunError> {
        let (message, checkpoint) = (delivery.message, &delivery.checkpoint);
        if progress.done == checkpoint.done {
            return Err(RunError::TryAgain("its time was up before any item was done".into()));
        }
        let run_output = self.put_run_output(message, &progress.run_output).await?;
        let (done, counts) = (progress.done, progress.counts);
        let moved = Checkpoint { done, counts, run_output, ..checkpoint.moved(delivery.run, self.clock.now()) };
        if let CheckpointMoved::Lost(_) = self.move_checkpoint(message, &moved).await? {
            // Another run has made the same progress, and may have died right after: send the message once more.
            tracing::debug!(job.id = %message.job_guid, "another run moved the checkpoint");
        }
        let next = ChunkMessage { delivery_mode: DeliveryMode::Recovered, ..message.clone() };
        self.chunks.send(&[next]).await?;
        Ok(ChunkEnd::Continued)
    }

    /// Moves the chunk's checkpoint, and writes the sign of life that the sweep looks for.
    pub(crate) async fn move_checkpoint(
        &self,
        message: &ChunkMessage,
        moved: &Checkpoint,
    ) -> Result<CheckpointMoved, PortError> {
        let result = self.jobs.move_checkpoint(message.job_guid, moved).await?;
        let ChunkAddress { attempt, tally, .. } = message.address;
        // The sign of life may fail: the move holds anyway.
        self.jobs.touch(message.job_guid, attempt, tally, moved.at).await.ok();
        Ok(result)
    }

    /// Stores a run output under a new id, if it is not empty. Returns the id. A run output never changes, because a run
    /// that was given up may have named it in a checkpoint or a mark.
    pub(crate) async fn put_run_output(
        &self,
        message: &ChunkMessage,
        run_output: &RunOutput,
    ) -> Result<Option<RunId>, PortError> {
        if run_output.is_empty() {
            return Ok(None);
        }
        let name = self.entropy.run_id();
        run_output::put(&*self.objects, message.job_guid, message.address, name, run_output).await?;
        Ok(Some(name))
    }

    /// Commits the chunk. Its run output is stored first, so that it exists once a mark names it.
    pub(crate) async fn commit_progress(
        &self,
        delivery: &Delivery<'_>,
        prepared: &Prepared,
        progress: Progress,
    ) -> Result<ChunkEnd, RunError> {
        let run_output = self.put_run_output(delivery.message, &progress.run_output).await?;
        let kind = match &progress.run_output {
            RunOutput { skipped_from: Some(_), .. } => MarkKind::Stopped,
            RunOutput { failed, .. } if !failed.is_empty() => MarkKind::HasFailed,
            RunOutput { outputs, .. } if !outputs.is_empty() => MarkKind::HasOutputs,
            _ => MarkKind::Clean,
        };
        let mark = Mark { kind, run: run_output.unwrap_or(delivery.run) };
        let committed = delivery.seat.commit(mark, progress.counts).await?;
        if committed.is_won() && progress.counts.failed > 0 {
            self.check_tolerance(delivery, prepared, committed.tally()).await?;
        }
        Ok(ChunkEnd::of(&committed, progress.counts))
    }

    /// Ends a chunk whose job was stopped before this run began: finished items keep their outcomes, the rest is
    /// skipped unread.
    async fn skip(&self, delivery: &Delivery<'_>) -> Result<ChunkEnd, RunError> {
        if delivery.checkpoint.done == 0 {
            return self.skip_all(delivery).await;
        }
        let prepared = self.prepared.get(delivery.message.job_guid).await?;
        match self.load(delivery, &prepared).await {
            Ok((items, mut progress)) => {
                progress.skip(&items[progress.done as usize..]);
                self.commit_progress(delivery, &prepared, progress).await
            }
            // The finished items can no longer be distinguished from the rest.
            Err(RunError::Input(InputError::SourceChanged(_) | InputError::OtherItems { .. })) => {
                self.skip_all(delivery).await
            }
            Err(error) => Err(error),
        }
    }

    /// Stops a job that cannot continue, and only then skips the chunk.
    async fn stop_and_skip(&self, delivery: &Delivery<'_>, stop: &Stop) -> Result<ChunkEnd, RunError> {
        self.stop(delivery, stop).await?;
        self.skip(delivery).await
    }

    async fn stop(&self, delivery: &Delivery<'_>, stop: &Stop) -> Result<(), PortError> {
        let job = delivery.watch.job(delivery.message.job_guid).await?;
        if !job.is_past(delivery.message.address.attempt) {
            stop_attempt(&*self.jobs, &job, stop).await?;
        }
        Ok(())
    }

    /// Stops the job of an item that holds its thread, and only then skips the rest of the chunk. Finished items keep
    /// their outcomes. The job's other chunks find it stopped, so they do not hold threads of their own.
    pub(crate) async fn stop_held(
        &self,
        delivery: &Delivery<'_>,
        prepared: &Prepared,
        items: &[InputItem],
        mut progress: Progress,
        row: u64,
    ) -> Result<ChunkEnd, RunError> {
        tracing::error!(job.id = %delivery.message.job_guid, item.row = row, "an item holds its thread, its job is stopped");
        let stop = Stop::item_timeout(row, self.limits.item_timeout, self.clock.now());
        self.stop(delivery, &stop).await?;
        progress.skip(&items[progress.done as usize..]);
        self.commit_progress(delivery, prepared, progress).await
    }

    async fn skip_all(&self, delivery: &Delivery<'_>) -> Result<ChunkEnd, RunError> {
        let counts = Counts::all_skipped(delivery.message.chunk.items.into());
        let mark = Mark { kind: MarkKind::Skipped, run: delivery.run };
        let committed = delivery.seat.commit(mark, counts).await?;
        Ok(ChunkEnd::of(&committed, counts))
    }

    /// Stops the job if more items have failed than it tolerates. One read is enough: it counts the closed tallies and
    /// the tally of this commit. Other open tallies are counted when they close. A redrive is not checked: its items
    /// had failed before.
    async fn check_tolerance(
        &self,
        delivery: &Delivery<'_>,
        prepared: &Prepared,
        tally: &Tally,
    ) -> Result<(), PortError> {
        let (Some(tolerance), 1) = (prepared.spec.tolerance, tally.attempt) else { return Ok(()) };
        let job_guid = delivery.message.job_guid;
        let totals = self.jobs.totals(job_guid, 1).await?;
        let open = if totals.closed.contains(&tally.number) { Counts::default() } else { tally.counts };
        let counts = totals.counts + open;
        if counts.exceed(&tolerance) {
            self.stop(delivery, &Stop::tolerance_exceeded(counts, self.clock.now())).await?;
        }
        Ok(())
    }

    /// Sends an isolated chunk to the isolate queue.
    pub(crate) async fn go_on_isolated(&self, message: &ChunkMessage) -> Result<ChunkEnd, RunError> {
        let next = ChunkMessage { delivery_mode: DeliveryMode::Isolated, ..message.clone() };
        self.isolated.send(&[next]).await?;
        Ok(ChunkEnd::Continued)
    }
}

/// How the delivery ends if its message is dropped: nothing of this attempt is left to do, or the job is paused.
const fn dropped(job: &Job, attempt: u32) -> Option<ChunkEnd> {
    if job.is_past(attempt) {
        Some(ChunkEnd::Past)
    } else if job.is_paused() {
        Some(ChunkEnd::Paused)
    } else {
        None
    }
}

fn misread(job: &Job, chunk: &Chunk, at: Timestamp) -> Stop {
    let message = "rows are read differently than they were split; please report this error, with the file if possible";
    let (row, offset) = job.redrive.is_none().then_some((chunk.first_row, chunk.offset)).unzip();
    Stop { row, offset, ..Stop::because(StopCode::AuditFailed, message, at) }
}
