//! An isolated chunk. Its checkpoint notes the items that run before they run, so that an item that kills its process fails
//! alone and not with its chunk.
//!
//! Fast items run a batch at a time, others one at a time. An expired note means that the run which wrote it died or hung on
//! those items. Several of them are run again in smaller parts, under a fresh message with a new delivery count. The second
//! death of one item alone makes it poison: it counts as failed, and a fresh message carries the rest of the chunk on.

use rowmill_core::items::give_up::fail_rest;
use rowmill_core::items::input::InputItem;
use rowmill_core::model::checkpoint::{Checkpoint, DEATHS_MAX, InFlight};
use rowmill_core::model::dead_letter::POISON;
use rowmill_core::ports::CheckpointMoved;
use rowmill_core::ports::processor::{CostClass, ItemError, ItemOutcome};

use crate::delivery::Delivery;
use crate::prepared::Prepared;
use crate::process::{ChunkEnd, ChunkProcessor};
use crate::run::{ChunkRun, Progress, RunError, batch_len};

/// In how many parts items are run again whose run has died.
const PARTS: u32 = 16;

impl ChunkProcessor {
    /// Runs the items of an isolated chunk from its checkpoint on.
    pub(crate) async fn run_isolated(&self, delivery: &Delivery<'_>) -> Result<ChunkEnd, RunError> {
        let checkpoint = &delivery.checkpoint;
        if checkpoint.is_live(self.clock.now()) {
            return Err(RunError::TryAgain("another run is at its items".into()));
        }
        if delivery.redelivered && checkpoint.in_flight.is_some_and(|note| note.items > 1) {
            // The deaths on the way to one item would use up the message's deliveries.
            return self.go_on_isolated(delivery.message).await;
        }
        let prepared = self.prepared.get(delivery.message.job_guid).await?;
        let (items, progress) = self.load(delivery, &prepared).await?;
        let deaths = checkpoint.in_flight.filter(|note| note.items == 1).map_or(0, |note| note.deaths + 1);
        let mut isolated = Isolated {
            processor: self,
            delivery,
            prepared: &prepared,
            items,
            deaths,
            suspects: Suspects::of(checkpoint),
            checkpoint: checkpoint.clone(),
            stored_lines: lines(&progress),
            progress,
            unanswered: None,
        };
        let end = if deaths >= DEATHS_MAX { isolated.pass_over_poison().await } else { isolated.run().await };
        if matches!(end, Err(RunError::Port(_))) {
            isolated.withdraw_note().await;
        }
        end
    }
}

/// How many items a run output lists.
const fn lines(progress: &Progress) -> usize {
    progress.run_output.failed.len() + progress.run_output.outputs.len()
}

/// Items on which a run has died or failed. They run in small parts.
#[derive(Clone, Copy, Default)]
struct Suspects {
    /// How many of the chunk's items are in front of the last of them, and itself.
    until: u32,
    /// How many of them run together.
    part: u32,
}

impl Suspects {
    /// The items of an expired note.
    fn of(checkpoint: &Checkpoint) -> Self {
        checkpoint.in_flight.map_or_else(Self::default, |note| Self {
            until: checkpoint.done.saturating_add(note.items),
            part: (note.items / PARTS).max(1),
        })
    }
}

/// A run over an isolated chunk.
struct Isolated<'a> {
    processor: &'a ChunkProcessor,
    delivery: &'a Delivery<'a>,
    prepared: &'a Prepared,
    items: Vec<InputItem>,
    progress: Progress,
    /// How many runs have died on the next item alone.
    deaths: u32,
    suspects: Suspects,
    /// The checkpoint as this run moved it last.
    checkpoint: Checkpoint,
    /// How many items are listed in the run output that the checkpoint names.
    stored_lines: usize,
    /// A move that may or may not have been applied: the store did not answer.
    unanswered: Option<Checkpoint>,
}

impl Isolated<'_> {
    async fn run(&mut self) -> Result<ChunkEnd, RunError> {
        let (processor, delivery) = (self.processor, self.delivery);
        let run = processor.chunk_run(delivery, self.prepared);
        while let Some(item) = self.items.get(self.progress.done as usize) {
            if item.record.is_err() {
                let item = item.clone();
                self.add(&item, Ok(ItemOutcome::Succeeded));
                continue;
            }
            if delivery.watch.job(delivery.message.job_guid).await?.stop.is_some() {
                self.progress.skip(&self.items[self.progress.done as usize..]);
                break;
            }
            if processor.clock.now() >= delivery.time_limit {
                return self.hand_over().await;
            }
            // Until the invocation has certainly ended: the margin follows the time limit.
            let until = delivery.time_limit + processor.limits.margin;
            let mut batch = self.next(&run);
            let items = u32::try_from(batch.len()).unwrap_or(u32::MAX);
            if !self.move_on(Some(InFlight { until, deaths: self.deaths, items })).await? {
                return Ok(ChunkEnd::Continued);
            }
            // Items that began in time may end within the margin. That is no hang and costs no delivery.
            let patience = delivery.time_limit + processor.limits.margin / 2;
            match run.before(patience, run.process_isolated(&mut batch)).await {
                // They had only the time that others left: the next run gives them all of its time.
                None if self.has_progress() => return self.hand_over().await,
                // Keep the note: an item that hangs is as bad as one that kills the process.
                None => return Err(RunError::TryAgain("isolated items took too long".into())),
                // One of them may be the cause, and must not take the others with it. The note stays until the next one.
                Some(Err(RunError::TryAgain(_) | RunError::StillFailing { .. }))
                    if items > 1 && processor.clock.now() < delivery.time_limit =>
                {
                    self.suspects = Suspects { until: self.progress.done.saturating_add(items), part: 1 };
                }
                Some(Err(RunError::TryAgain(_) | RunError::StillFailing { .. })) if self.has_progress() => {
                    return self.hand_over().await;
                }
                Some(Err(RunError::Held { row })) => {
                    let progress = std::mem::take(&mut self.progress);
                    return processor.stop_held(delivery, self.prepared, &self.items, progress, row).await;
                }
                Some(Err(error)) => {
                    if items > 1 {
                        // As after a death of this run: the next one runs them in smaller parts.
                        return Err(error);
                    }
                    if !self.move_on(None).await? {
                        return Ok(ChunkEnd::Continued);
                    }
                    let RunError::StillFailing { open, error } = error else { return Err(error) };
                    return processor.still_failing(delivery, self.prepared, open, error).await;
                }
                Some(Ok(results)) => {
                    batch.iter().zip(results).for_each(|(item, result)| self.add(item, result));
                    self.deaths = 0;
                }
            }
        }
        let progress = std::mem::take(&mut self.progress);
        processor.commit_progress(delivery, self.prepared, progress).await
    }

    /// The items that run next.
    fn next(&self, run: &ChunkRun<'_>) -> Vec<InputItem> {
        let (done, Suspects { until, part }) = (self.progress.done, self.suspects);
        let rest = &self.items[done as usize..];
        let count = match self.prepared.processor.cost() {
            CostClass::Fast if until > done => part.min(until - done) as usize,
            CostClass::Fast => batch_len(rest, run.batch_items()),
            CostClass::StoreBound | CostClass::Remote => 1,
        };
        rest[..count.clamp(1, rest.len())].to_vec()
    }

    /// Fails the next item as poison, and sends a fresh message for the rest. Above the limit of poison items the rest
    /// fails too.
    async fn pass_over_poison(&mut self) -> Result<ChunkEnd, RunError> {
        let place = self.progress.done as usize;
        if let Some(item) = self.items.get(place).cloned() {
            let message = format!("processing the item ended its process {DEATHS_MAX} times");
            self.add(&item, Err(ItemError::permanent(POISON, message)));
            self.checkpoint.poisoned += 1;
            self.deaths = 0;
        }
        if self.checkpoint.poisoned > self.processor.limits.poison_max {
            let rest = self.items.split_off(self.progress.done as usize);
            fail_rest(&rest, &mut self.progress.counts, &mut self.progress.run_output);
            self.progress.done += u32::try_from(rest.len()).unwrap_or(u32::MAX);
            let progress = std::mem::take(&mut self.progress);
            return self.processor.commit_progress(self.delivery, self.prepared, progress).await;
        }
        self.hand_over().await
    }

    /// Whether this run has done any item.
    fn has_progress(&self) -> bool {
        self.progress.done > self.delivery.checkpoint.done
    }

    fn add(&mut self, item: &InputItem, result: Result<ItemOutcome, ItemError>) {
        self.progress.add(item, result, self.processor.limits.output_max_bytes);
    }

    async fn hand_over(&mut self) -> Result<ChunkEnd, RunError> {
        match self.move_on(None).await? {
            true => self.processor.go_on_isolated(self.delivery.message).await,
            false => Ok(ChunkEnd::Continued),
        }
    }

    /// Moves the checkpoint to the progress so far, with this note. `false` if another run has moved it: the chunk is
    /// left to that run, with a message in case it has died.
    async fn move_on(&mut self, in_flight: Option<InFlight>) -> Result<bool, RunError> {
        let (processor, delivery) = (self.processor, self.delivery);
        let lines = lines(&self.progress);
        let run_output = match lines == self.stored_lines {
            true => self.checkpoint.run_output,
            false => processor.put_run_output(delivery.message, &self.progress.run_output).await?,
        };
        let moved = Checkpoint {
            done: self.progress.done,
            counts: self.progress.counts,
            run_output,
            isolated: true,
            in_flight,
            poisoned: self.checkpoint.poisoned,
            ..self.checkpoint.moved(delivery.run, processor.clock.now())
        };
        self.unanswered = Some(moved.clone());
        let result = processor.move_checkpoint(delivery.message, &moved).await?;
        self.unanswered = None;
        match result {
            CheckpointMoved::Won => {
                (self.checkpoint, self.stored_lines) = (moved, lines);
                Ok(true)
            }
            CheckpointMoved::Lost(_) => {
                processor.go_on_isolated(delivery.message).await?;
                Ok(false)
            }
        }
    }

    /// Withdraws the note of an item if a store did not answer, so that it does not count as a death. This may fail: an
    /// item that is blamed twice for an outage ends as poison.
    async fn withdraw_note(&mut self) {
        if let Some(unanswered) = self.unanswered.take() {
            match self.processor.move_checkpoint(self.delivery.message, &unanswered).await {
                Ok(CheckpointMoved::Won) => self.checkpoint = unanswered,
                Ok(CheckpointMoved::Lost(_)) | Err(_) => return,
            }
        }
        if self.checkpoint.in_flight.is_some() {
            self.move_on(None).await.ok();
        }
    }
}
