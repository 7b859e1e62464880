//! A chunk at which a run is, and what a run reads and writes of it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::items::file_links;
use rowmill_core::items::give_up;
use rowmill_core::items::input::{InputItem, read_input};
use rowmill_core::items::progress::Progress;
use rowmill_core::items::run_output;
use rowmill_core::model::checkpoint::{Checkpoint, InFlight, Suspects};
use rowmill_core::model::ids::RunId;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::permit::PermitSeen;
use rowmill_core::model::run_output::RunOutput;
use rowmill_core::model::tally::ChunkAddress;
use rowmill_core::ports::processor::{ItemError, ItemOutcome};
use rowmill_core::ports::{
    CheckpointMoved, Clock, DirectTransfers, Entropy, JobStore, Objects, PortError, Queue, Tasks,
};
use rowmill_core::progress::commit::joint_commits::Seat;

use crate::end::{Conclusion, RunError};
use crate::neighbours::{SharedObjects, SharedRead};
use crate::prepared::Prepared;
use crate::watch::JobWatch;

pub struct ChunkPorts {
    pub jobs: Arc<dyn JobStore>,
    /// The files and the run outputs.
    pub objects: Arc<dyn Objects>,
    /// The items queue, for a chunk whose run ran out of time.
    pub chunks: Arc<dyn Queue<ChunkMessage>>,
    pub isolated: Arc<dyn Queue<ChunkMessage>>,
    /// What workers look for.
    pub tasks: Arc<dyn Tasks>,
    /// Links to files, for an item that lists them.
    pub transfers: Arc<dyn DirectTransfers>,
    pub link_expiry: Duration,
    pub clock: Arc<dyn Clock>,
    /// Names for runs, and jitter.
    pub entropy: Arc<dyn Entropy>,
}

impl ChunkPorts {
    /// Sends the message to the queue of its delivery mode.
    pub(crate) async fn send(&self, message: ChunkMessage) -> Result<(), PortError> {
        let queue = if message.delivery_mode == DeliveryMode::Isolated { &self.isolated } else { &self.chunks };
        queue.send(&[message]).await
    }
}

/// One run at a chunk: its message, and its time.
pub(crate) struct Delivery<'a> {
    pub message: &'a ChunkMessage,
    pub redelivered: bool,
    pub run: RunId,
    /// The invocation's time limit, less the margin.
    pub time_limit: Timestamp,
    pub watch: &'a JobWatch,
    /// Commits its chunk, together with others of the invocation.
    pub seat: Seat<'a>,
    /// The read that the chunk shares with its neighbours.
    pub shared: Option<Arc<SharedRead>>,
}

/// A chunk at which a run is: its items, their outcomes, and its checkpoint.
pub(crate) struct OpenChunk<'a> {
    ports: &'a ChunkPorts,
    pub delivery: &'a Delivery<'a>,
    pub began: Timestamp,
    /// As this run has read it or moved it last.
    pub checkpoint: Checkpoint,
    /// Those behind the items that are done; see [`suspects`](Self::suspects).
    pub suspects: Option<Suspects>,
    /// Number of items that were done before this run.
    done_before: u32,
    /// The job; `None` until the items are read.
    pub prepared: Option<Arc<Prepared>>,
    pub items: Vec<InputItem>,
    pub progress: Progress,
    /// Number of items listed in the run output that the checkpoint names.
    stored_lines: usize,
    /// A move that may or may not have been applied: the store did not answer.
    unanswered: Option<Checkpoint>,
}

impl<'a> OpenChunk<'a> {
    /// A chunk without a checkpoint has a blank one.
    pub fn new(ports: &'a ChunkPorts, delivery: &'a Delivery<'a>, checkpoint: Option<Checkpoint>) -> Self {
        let began = ports.clock.now();
        let checkpoint = checkpoint.unwrap_or_else(|| Checkpoint::blank(delivery.message.address, began));
        Self {
            ports,
            delivery,
            began,
            suspects: checkpoint.known_suspects(),
            done_before: checkpoint.done,
            progress: Progress::of(&checkpoint, RunOutput::default()),
            checkpoint,
            prepared: None,
            items: Vec::new(),
            stored_lines: 0,
            unanswered: None,
        }
    }

    /// Reads the items, and their outcomes so far.
    pub async fn load(&mut self, prepared: &Arc<Prepared>) -> Result<(), RunError> {
        let objects = SharedObjects { objects: &*self.ports.objects, shared: self.delivery.shared.as_deref() };
        self.items = read_input(&objects, &prepared.spec, &prepared.columns, self.delivery.message).await?;
        let links = (&*prepared.spec, self.ports.link_expiry);
        file_links::link(&*self.ports.objects, &*self.ports.transfers, links, &mut self.items).await?;
        self.progress = self.progress_in(&self.checkpoint).await?;
        self.stored_lines = self.progress.lines();
        self.prepared = Some(Arc::clone(prepared));
        Ok(())
    }

    async fn progress_in(&self, checkpoint: &Checkpoint) -> Result<Progress, PortError> {
        let run_output =
            run_output::of_checkpoint(&*self.ports.objects, self.delivery.message.job_guid, checkpoint).await?;
        Ok(Progress::of(checkpoint, run_output))
    }

    pub const fn is_isolated(&self) -> bool {
        self.checkpoint.isolated || matches!(self.delivery.message.delivery_mode, DeliveryMode::Isolated)
    }

    /// True if this run has done any item.
    pub const fn has_progress(&self) -> bool {
        self.progress.done > self.done_before
    }

    /// The items that are not done.
    pub fn rest(&self) -> &[InputItem] {
        self.items.get(self.progress.done as usize..).unwrap_or_default()
    }

    /// The suspects, as far as they concern the next items.
    pub fn suspects(&self) -> Option<Suspects> {
        self.suspects.filter(|suspects| suspects.concern(self.progress.done))
    }

    /// Adds the outcome of the next item.
    pub fn add(&mut self, item: &InputItem, result: Result<ItemOutcome, ItemError>, output_max_bytes: u64) {
        self.progress.add(item, result, output_max_bytes);
        if let Some(suspects) = &mut self.suspects {
            (suspects.deaths, suspects.failures) = (0, 0);
        }
    }

    /// The outcomes with the rest skipped. Items that another run has finished according to the checkpoint are not
    /// skipped.
    pub async fn skipped(&self) -> Result<Progress, PortError> {
        let message = self.delivery.message;
        let stored = self.ports.jobs.checkpoint(message.job_guid, message.address).await?;
        let mut progress = match stored.filter(|stored| stored.done >= self.progress.done) {
            Some(stored) => self.progress_in(&stored).await?,
            None => self.progress.clone(),
        };
        let Progress { done, counts, run_output } = &mut progress;
        give_up::skip_rest(&*self.ports.objects, message, *done, counts, run_output).await?;
        Ok(progress)
    }

    /// Moves the checkpoint of an isolated chunk to the progress so far, with this note. If another run has moved it,
    /// returns how to conclude: the chunk is left to that run, with a message in case it has died.
    pub async fn note(&mut self, in_flight: Option<InFlight>) -> Result<Option<Conclusion>, PortError> {
        let is_moved = self.move_to(in_flight, Some(self.delivery.message.epoch), None).await?;
        Ok((!is_moved).then(|| Conclusion::continued(self.delivery.message, DeliveryMode::Isolated)))
    }

    /// Moves the checkpoint as [`note`](Self::note) does, and takes this permit, if there is one. Returns whether both are
    /// done.
    pub async fn lease(&mut self, note: InFlight, permit: Option<&PermitSeen>) -> Result<bool, PortError> {
        self.move_to(Some(note), Some(self.delivery.message.epoch), permit).await
    }

    /// Moves the checkpoint to the progress so far, for the next run. Returns the message for that run.
    pub async fn hand_over(&mut self) -> Result<ChunkMessage, PortError> {
        if !self.move_to(None, None, None).await? {
            // Another run has made the same progress, and may have died right after: send the message once more.
            tracing::debug!(job.id = %self.delivery.message.job_guid, "another run moved the checkpoint");
        }
        let delivery_mode = if self.is_isolated() { DeliveryMode::Isolated } else { DeliveryMode::Recovered };
        Ok(ChunkMessage { delivery_mode, ..self.delivery.message.clone() })
    }

    /// Returns whether it is moved, and not by another run.
    async fn move_to(
        &mut self,
        in_flight: Option<InFlight>,
        begun: Option<u32>,
        permit: Option<&PermitSeen>,
    ) -> Result<bool, PortError> {
        let lines = self.progress.lines();
        let run_output = match lines == self.stored_lines {
            true => self.checkpoint.run_output,
            false => Some(self.put_run_output().await?),
        };
        let moved = Checkpoint {
            done: self.progress.done,
            counts: self.progress.counts,
            run_output,
            isolated: self.is_isolated(),
            in_flight,
            suspects: self.suspects(),
            begun,
            ..self.checkpoint.moved(self.delivery.run, self.ports.clock.now())
        };
        self.unanswered = Some(moved.clone());
        let is_moved = match permit {
            Some(permit) => self.ports.jobs.lease_with_permit(self.delivery.message.job_guid, &moved, permit).await?,
            None => self.store_checkpoint(&moved).await? == CheckpointMoved::Won,
        };
        self.unanswered = None;
        if is_moved {
            (self.checkpoint, self.stored_lines) = (moved, lines);
        }
        Ok(is_moved)
    }

    /// Stores the run output so far under a new id: a run that was given up may have named an earlier one.
    async fn put_run_output(&self) -> Result<RunId, PortError> {
        let (message, name) = (self.delivery.message, self.ports.entropy.run_id());
        let objects = &*self.ports.objects;
        run_output::put(objects, message.job_guid, message.address, name, &self.progress.run_output).await?;
        Ok(name)
    }

    /// Stores the moved checkpoint, and the sign of life that the sweep looks for.
    async fn store_checkpoint(&self, moved: &Checkpoint) -> Result<CheckpointMoved, PortError> {
        let (jobs, job_guid) = (&self.ports.jobs, self.delivery.message.job_guid);
        let answer = jobs.move_checkpoint(job_guid, moved).await?;
        let ChunkAddress { attempt, tally, .. } = moved.chunk;
        // The sign of life may fail: the move holds anyway.
        jobs.touch(job_guid, attempt, tally, moved.at).await.ok();
        Ok(answer)
    }

    /// Withdraws this run's note of the items, so that it does not count as a death. The note of another run stays: that
    /// run may be at its items. A run of which two calls fail may leave it, and an item that is blamed for that twice ends
    /// as poison.
    pub async fn withdraw_note(&mut self) -> Result<(), PortError> {
        if let Some(unanswered) = self.unanswered.clone() {
            let moved = self.store_checkpoint(&unanswered).await?;
            self.unanswered = None;
            match moved {
                CheckpointMoved::Won => self.checkpoint = unanswered,
                CheckpointMoved::Lost(_) => return Ok(()),
            }
        }
        let is_own = self.checkpoint.by == Some(self.delivery.run);
        if is_own && self.checkpoint.in_flight.is_some() {
            self.note(None).await?;
        }
        Ok(())
    }
}
