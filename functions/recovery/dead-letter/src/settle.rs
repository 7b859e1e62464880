//! Settles the messages that a queue gave up on.
//!
//! A dead letter is recorded first, so that nothing is lost silently. A chunk is then isolated: its items are noted
//! before they run, so that only the items that cannot run fail. A chunk that fails there too is given up: its
//! remaining items count as failed. If no run has begun since its last fresh message, it gets another one. A split or a
//! completion that failed at every try stops the job, once no run holds its lease. So every job ends.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::items::give_up::{fail_rest, fail_unread, skip_rest};
use rowmill_core::items::input::{InputError, InputItem, read_input};
use rowmill_core::items::layouts;
use rowmill_core::items::manifest::{end_copy, read_manifest};
use rowmill_core::items::run_output;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::dead_letter::{DeadChunk, DeadLetter, DeadLetterKind};
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::job::{Job, Stop, StopCode};
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, DeliveryMode, SplitMessage};
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::{
    CheckpointMoved, Clock, Completion, Entropy, JobStore, Objects, PortError, Queue, WriteLost,
};
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::update::{release_lease, stop_attempt, take_lease, update_job};
use serde::Deserialize;

/// The use case and the ports it works through.
pub struct DeadLetters {
    pub jobs: Arc<dyn JobStore>,
    /// The files and the run outputs.
    pub objects: Arc<dyn Objects>,
    /// The isolate queue, whose chunks run item by item.
    pub isolated: Arc<dyn Queue<ChunkMessage>>,
    /// The shared steps: committing a chunk, closing a tally, ending the split.
    pub steps: JobSteps,
    pub clock: Arc<dyn Clock>,
    /// Names for runs.
    pub entropy: Arc<dyn Entropy>,
    /// An isolated chunk is not given up for this long after its checkpoint moved last, because another message of it
    /// may be queued. Longer than the isolate queue hides a message until its next delivery.
    pub patience: Duration,
    /// A job is not given up for this long after its last tally was closed, because the message of a completion whose
    /// run died may come again. Longer than the completions queue hides a message until its next delivery, and than the
    /// lease of that run.
    pub completion_patience: Duration,
    /// Duration of the lease; longer than an invocation can last.
    pub lease: Duration,
    /// Retention of a job after its end.
    pub retention: Duration,
}

/// A message of any of the dead-letter queues.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum DeadMessage {
    /// Of the items, the isolate or the lanes queue.
    Chunk(ChunkMessage),
    /// Of the jobs queue.
    Split(SplitMessage),
    /// Of the completions queue.
    Completion(CompletionMessage),
}

impl DeadMessage {
    pub const fn job_guid(&self) -> JobGuid {
        match self {
            Self::Chunk(ChunkMessage { job_guid, .. })
            | Self::Split(SplitMessage { job_guid, .. })
            | Self::Completion(CompletionMessage { job_guid, .. }) => *job_guid,
        }
    }

    const fn attempt(&self) -> u32 {
        match self {
            Self::Chunk(chunk) => chunk.address.attempt,
            Self::Split(SplitMessage { attempt, .. }) | Self::Completion(CompletionMessage { attempt, .. }) => *attempt,
        }
    }

    const fn kind(&self) -> DeadLetterKind {
        match self {
            Self::Chunk(ChunkMessage { delivery_mode: DeliveryMode::Isolated, .. }) => DeadLetterKind::Isolated,
            Self::Chunk(_) => DeadLetterKind::Items,
            Self::Split(_) => DeadLetterKind::Split,
            Self::Completion(_) => DeadLetterKind::Completion,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeadLetterEnd {
    /// Another run has done the work, or it is no longer needed.
    Obsolete,
    /// Its chunk is isolated from now on.
    Isolated,
    /// The rest of its chunk counts as failed, or as skipped if the job was stopped.
    GivenUp,
    /// Its job is stopped and will end.
    JobStopped,
}

impl DeadLetters {
    /// Records a dead letter and settles it.
    ///
    /// # Errors
    /// A port that is unavailable, or a run that may still be at work: deliver the message again later.
    pub async fn settle(&self, message_id: &str, message: &DeadMessage) -> Result<DeadLetterEnd, PortError> {
        let job = match self.jobs.job(message.job_guid()).await {
            Err(PortError::NotFound) => return Ok(DeadLetterEnd::Obsolete),
            // Its rows are being erased.
            Ok(job) if job.deleted_at.is_some() => return Ok(DeadLetterEnd::Obsolete),
            job => job?,
        };
        self.record(message_id, message).await?;
        if job.is_past(message.attempt()) {
            if matches!(message, DeadMessage::Completion(_)) {
                self.give_up_copy(&job).await?;
            }
            return Ok(DeadLetterEnd::Obsolete);
        }
        let run = self.entropy.run_id();
        match message {
            // A resume sends the chunk again.
            DeadMessage::Chunk(chunk) if job.drops(chunk) => Ok(DeadLetterEnd::Obsolete),
            DeadMessage::Chunk(chunk) => self.settle_chunk(&job, chunk, run).await,
            DeadMessage::Split(split) => self.settle_split(&job, split, run).await,
            DeadMessage::Completion(completion) => self.settle_completion(&job, completion, run).await,
        }
    }

    async fn record(&self, message_id: &str, message: &DeadMessage) -> Result<(), PortError> {
        let chunk = match message {
            DeadMessage::Chunk(chunk) => Some(DeadChunk::from(chunk)),
            _ => None,
        };
        let (about, attempt) = (message.kind(), message.attempt());
        let letter =
            DeadLetter { message_id: message_id.to_owned(), about: about.into(), attempt, chunk, at: self.clock.now() };
        self.jobs.record_dead_letter(message.job_guid(), &letter).await
    }

    /// Notes that the results of an ended job are not copied any more, if that is what the message was for.
    async fn give_up_copy(&self, job: &Job) -> Result<(), PortError> {
        let Some(results) = job.end().and_then(|end| end.results.as_ref()) else { return Ok(()) };
        let manifest = read_manifest(&*self.objects, job.job_guid, results).await?;
        if manifest.is_none_or(|(manifest, _)| manifest.copied_to.is_none()) {
            return Ok(());
        }
        // It stays whole if it is: that is another object.
        let said = "The bucket did not take them, again and again.";
        end_copy(&*self.objects, job.job_guid, results.attempt, Some(said)).await
    }

    async fn settle_chunk(&self, job: &Job, message: &ChunkMessage, run: RunId) -> Result<DeadLetterEnd, PortError> {
        if let Some(tally) = self.steps.committer.committed(message.job_guid, message.address).await? {
            self.steps.committer.settle(message, &tally, true).await?;
            return Ok(DeadLetterEnd::Obsolete);
        }
        let now = self.clock.now();
        let checkpoint = self.jobs.checkpoint(message.job_guid, message.address).await?;
        let checkpoint = checkpoint.unwrap_or_else(|| Checkpoint::blank(message.address, now));
        if job.is_stopped() {
            return self.give_up(job, message, &checkpoint, run).await;
        }
        // If no run of it has begun, the deliveries of the message were used up by throttled or late invocations.
        if message.delivery_mode != DeliveryMode::Isolated || checkpoint.begun != Some(message.epoch) {
            return self.isolate(message, &checkpoint, run).await;
        }
        if checkpoint.is_live(now) || now < checkpoint.at + self.patience {
            return Err(PortError::unavailable("giving a chunk up", "another run may still be at its items"));
        }
        self.give_up(job, message, &checkpoint, run).await
    }

    /// Isolates the chunk. The checkpoint says so before the message is sent, also if another message of the chunk
    /// is queued.
    async fn isolate(
        &self,
        message: &ChunkMessage,
        checkpoint: &Checkpoint,
        run: RunId,
    ) -> Result<DeadLetterEnd, PortError> {
        if !checkpoint.isolated {
            // A worker would lose its task.
            if checkpoint.held_until().is_some_and(|until| until > self.clock.now()) {
                return Err(PortError::unavailable("isolating a chunk", "a worker holds it"));
            }
            let moved = Checkpoint { isolated: true, ..checkpoint.moved(run, self.clock.now()) };
            if let CheckpointMoved::Lost(_) = self.jobs.move_checkpoint(message.job_guid, &moved).await? {
                return Err(PortError::unavailable("isolating a chunk", "another run moved its checkpoint"));
            }
        }
        let isolated = ChunkMessage { delivery_mode: DeliveryMode::Isolated, ..message.clone() };
        self.isolated.send(&[isolated]).await?;
        Ok(DeadLetterEnd::Isolated)
    }

    /// Gives a chunk up: items that are done keep their outcomes, the rest fails, or is skipped if the job is stopped.
    async fn give_up(
        &self,
        job: &Job,
        message: &ChunkMessage,
        checkpoint: &Checkpoint,
        run: RunId,
    ) -> Result<DeadLetterEnd, PortError> {
        let (objects, done) = (&*self.objects, checkpoint.done);
        let mut run_output = run_output::of_checkpoint(objects, message.job_guid, checkpoint).await?;
        let mut counts = checkpoint.counts;
        if job.is_stopped() {
            skip_rest(objects, message, done, &mut counts, &mut run_output).await?;
        } else {
            match items_of(objects, self.jobs.spec(message.job_guid).await?, message).await {
                Ok(items) => fail_rest(&items[done as usize..], &mut counts, &mut run_output),
                Err(InputError::Port(error @ (PortError::Unavailable { .. } | PortError::Denied { .. }))) => {
                    return Err(error);
                }
                Err(error) => {
                    tracing::error!(job.id = %message.job_guid, %error, "the rows of a chunk that was given up cannot be read");
                    fail_unread(message, done, &mut counts, &mut run_output);
                }
            }
        }
        let outcomes = (&run_output, &counts);
        let mark = run_output::put_before_mark(objects, message.job_guid, message.address, run, outcomes).await?;
        self.steps.committer.commit(message, mark, counts).await?;
        Ok(DeadLetterEnd::GivenUp)
    }

    async fn settle_split(&self, job: &Job, message: &SplitMessage, run: RunId) -> Result<DeadLetterEnd, PortError> {
        if job.split.done {
            self.steps.split_end.announce(job).await?;
            return Ok(DeadLetterEnd::Obsolete);
        }
        if job.is_awaiting() {
            // The sweep looks again for what it waits for.
            return Ok(DeadLetterEnd::Obsolete);
        }
        // The split has made progress since, or the job is in a later epoch: a resume has a message of its own. If that
        // is lost, the sweep recovers it.
        let has_moved = |job: &Job| (job.split.tallies, job.epoch) != (message.tallies, message.epoch);
        if has_moved(job) && !job.is_stopped() {
            return Ok(DeadLetterEnd::Obsolete);
        }
        let job = self.take_lease(job, run).await?;
        let said = "every try to split the file failed; see the logs of split-job for the cause";
        let stop = Stop::because(StopCode::SplitFailed, said, self.clock.now());
        let still = |job: &Job| job.stop(&stop).filter(|_| !has_moved(job));
        let job = match update_job(&*self.jobs, &job, still).await?.job() {
            job if job.is_past(message.attempt) => return Ok(DeadLetterEnd::Obsolete),
            job if !job.is_stopped() => {
                release_lease(&*self.jobs, &job, run).await?;
                return Ok(DeadLetterEnd::Obsolete);
            }
            job => job,
        };
        self.steps.split_end.finish(&job, run, false).await?;
        Ok(DeadLetterEnd::JobStopped)
    }

    async fn settle_completion(
        &self,
        job: &Job,
        message: &CompletionMessage,
        run: RunId,
    ) -> Result<DeadLetterEnd, PortError> {
        let totals = self.jobs.totals(job.job_guid, job.attempt).await?;
        if !job.split.done || !totals.is_complete() {
            return Ok(DeadLetterEnd::Obsolete);
        }
        // A redundant message: the message of a run that died may come again, or the composition has made progress
        // since. Failed tries change neither, so they do not put the end off for ever. If no run is at work, the sweep
        // finds the job.
        let may_come_again = totals.at.is_some_and(|moved_at| self.clock.now() < moved_at + self.completion_patience);
        if may_come_again || job.composing != message.composing {
            return Ok(DeadLetterEnd::Obsolete);
        }
        let job = self.take_lease(job, run).await?;
        if job.composing != message.composing {
            release_lease(&*self.jobs, &job, run).await?;
            return Ok(DeadLetterEnd::Obsolete);
        }
        let said = "every try to end the job failed; see the logs of complete-job for the cause";
        let stop = Stop::because(StopCode::CompletionFailed, said, self.clock.now());
        let Some(job) = stop_attempt(&*self.jobs, &job, &stop).await? else { return Ok(DeadLetterEnd::Obsolete) };
        let Some(completion) = Completion::of(&job, &totals, None, self.clock.now(), self.retention) else {
            return Ok(DeadLetterEnd::Obsolete);
        };
        match self.jobs.complete(&completion).await {
            Ok(()) => Ok(DeadLetterEnd::JobStopped),
            Err(WriteLost::Condition(now)) if now.is_past(job.attempt) => Ok(DeadLetterEnd::Obsolete),
            Err(WriteLost::Condition(_)) => {
                Err(PortError::unavailable("ending the job", "it has changed since it was read"))
            }
            Err(WriteLost::Port(error)) => Err(error),
        }
    }

    /// Takes the job's lease. If another run holds it, the work is not abandoned, so this is an error.
    async fn take_lease(&self, job: &Job, holder: RunId) -> Result<Job, PortError> {
        let taken = take_lease(&*self.jobs, &*self.clock, job, holder, self.lease).await?.done();
        taken.map_err(|_| PortError::unavailable("taking the lease", "another run holds it"))
    }
}

/// The items of a chunk.
async fn items_of(objects: &dyn Objects, spec: Spec, message: &ChunkMessage) -> Result<Vec<InputItem>, InputError> {
    let spec = layouts::spec_of(objects, spec, message).await?;
    read_input(objects, &spec, &spec.head.columns.clone().into(), message).await
}
