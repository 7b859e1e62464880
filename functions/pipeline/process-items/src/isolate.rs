//! An isolated chunk. Its checkpoint notes the items that run before they run, so that an item that kills its process fails
//! alone and not with its chunk.
//!
//! Fast items run a batch at a time, others one at a time. An expired note means that the run which wrote it died or hung on
//! those items. Several of them are *suspects*: they run again in smaller parts, under a fresh message with a new delivery
//! count. So do items that take longer than an invocation together. The second death of one item alone
//! makes it poison: it counts as failed, and a fresh message carries the rest of the chunk on.

use rowmill_core::items::give_up::fail_rest;
use rowmill_core::items::input::InputItem;
use rowmill_core::model::checkpoint::{Checkpoint, DEATHS_MAX, InFlight, Suspects};
use rowmill_core::model::dead_letter::POISON;
use rowmill_core::ports::CheckpointMoved;
use rowmill_core::ports::processor::{CostClass, ItemError, ItemOutcome};

use crate::delivery::Delivery;
use crate::prepared::Prepared;
use crate::process::{ChunkEnd, ChunkProcessor};
use crate::run::{ChunkRun, Progress, RunError, batch_len};

impl ChunkProcessor {
    /// Runs the items of an isolated chunk from its checkpoint on.
    pub(crate) async fn run_isolated(&self, delivery: &Delivery<'_>) -> Result<ChunkEnd, RunError> {
        let checkpoint = &delivery.checkpoint;
        if checkpoint.is_live(self.clock.now()) {
            return Err(RunError::TryAgain("another run is at its items".into()));
        }
        let prepared = self.prepared.get(delivery.message.job_guid).await?;
        let (items, progress) = self.load(delivery, &prepared).await?;
        let suspects = checkpoint.known_suspects();
        let mut isolated = Isolated {
            processor: self,
            delivery,
            prepared: &prepared,
            items,
            suspects,
            checkpoint: checkpoint.clone(),
            stored_lines: lines(&progress),
            progress,
            unanswered: None,
        };
        let end = match (suspects, checkpoint.in_flight) {
            (Some(suspects), _) if suspects.deaths >= DEATHS_MAX => isolated.pass_over_poison().await,
            // The deaths on the way to one item would use up the deliveries of this message. What is known moves to the
            // checkpoint first, so that a death is answered with one fresh message.
            (_, Some(note)) if note.items > 1 && delivery.redelivered => isolated.hand_over().await,
            _ => isolated.run().await,
        };
        if matches!(end, Err(RunError::Port(_))) {
            isolated.withdraw_note().await;
        }
        end
    }
}

/// Number of items a run output lists.
const fn lines(progress: &Progress) -> usize {
    progress.run_output.failed.len() + progress.run_output.outputs.len()
}

/// A run over an isolated chunk.
struct Isolated<'a> {
    processor: &'a ChunkProcessor,
    delivery: &'a Delivery<'a>,
    prepared: &'a Prepared,
    items: Vec<InputItem>,
    progress: Progress,
    suspects: Option<Suspects>,
    /// The checkpoint as this run moved it last.
    checkpoint: Checkpoint,
    /// Number of items listed in the run output that the checkpoint names.
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
            let job = delivery.watch.job(delivery.message.job_guid).await?;
            if job.is_past(delivery.message.address.attempt) {
                return Ok(ChunkEnd::Past);
            }
            if job.stop.is_some() {
                self.progress.skip(&self.items[self.progress.done as usize..]);
                break;
            }
            if processor.clock.now() >= delivery.time_limit {
                return self.hand_over().await;
            }
            let mut batch = self.next(&run);
            let items = u32::try_from(batch.len()).unwrap_or(u32::MAX);
            // Until the invocation has certainly ended: the margin follows the time limit.
            let until = delivery.time_limit + processor.limits.margin;
            let deaths = self.suspects().map_or(0, |suspects| suspects.deaths);
            if !self.move_on(Some(InFlight { until, deaths, items })).await? {
                return Ok(ChunkEnd::Continued);
            }
            if processor.clock.now() >= delivery.time_limit {
                // The store took all of the time.
                return self.hand_over().await;
            }
            // Items that began in time may end within the margin. That is no hang and costs no delivery.
            let patience = delivery.time_limit + processor.limits.margin / 2;
            match run.before(patience, run.process_isolated(&mut batch)).await {
                // They had only the time that others left: the next run gives them all of its time.
                None if self.has_progress() => return self.hand_over().await,
                // Those beyond them may be as slow.
                None if items > 1 => {
                    let narrow = Suspects::after(self.progress.done, items);
                    let beyond = self.suspects().and_then(|suspects| suspects.beyond).unwrap_or(narrow.part);
                    self.suspects = Some(Suspects { beyond: Some(beyond), ..narrow });
                    return self.hand_over().await;
                }
                // Keep the note: an item that hangs is as bad as one that kills the process.
                None => return Err(RunError::TryAgain("an isolated item took too long".into())),
                // One of them may be the cause, and must not take the others with it.
                Some(Err(RunError::TryAgain(_) | RunError::StillFailing { .. })) if items > 1 => {
                    let beyond = self.suspects().and_then(|suspects| suspects.beyond);
                    let narrow = Suspects::after(self.progress.done, items);
                    self.suspects = Some(Suspects { part: 1, beyond, ..narrow });
                }
                Some(Err(RunError::TryAgain(_) | RunError::StillFailing { .. })) if self.has_progress() => {
                    return self.hand_over().await;
                }
                Some(Err(RunError::Held { row })) => {
                    let progress = self.progress.clone();
                    return processor.stop_held(delivery, self.prepared, &self.items, progress, row).await;
                }
                Some(Err(error)) => {
                    if !self.move_on(None).await? {
                        return Ok(ChunkEnd::Continued);
                    }
                    let RunError::StillFailing { open, error } = error else { return Err(error) };
                    return processor.still_failing(delivery, self.prepared, open, error).await;
                }
                Some(Ok(results)) => {
                    batch.iter().zip(results).for_each(|(item, result)| self.add(item, result));
                }
            }
        }
        // If the commit fails, the note is withdrawn, and the checkpoint must keep the progress.
        processor.commit_progress(delivery, self.prepared, self.progress.clone()).await
    }

    /// The suspects, as far as they concern the next items.
    fn suspects(&self) -> Option<Suspects> {
        self.suspects.filter(|suspects| suspects.concern(self.progress.done))
    }

    fn next(&self, run: &ChunkRun<'_>) -> Vec<InputItem> {
        let rest = &self.items[self.progress.done as usize..];
        let together = self.suspects().and_then(|suspects| suspects.together(self.progress.done));
        let count = match (self.prepared.processor.cost(), together) {
            (CostClass::Fast, Some(together)) => together as usize,
            (CostClass::Fast, None) => batch_len(rest, run.batch_items()),
            (CostClass::StoreBound | CostClass::Remote, _) => 1,
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
        }
        if self.checkpoint.poisoned > self.processor.limits.poison_max {
            let rest = self.items.split_off(self.progress.done as usize);
            fail_rest(&rest, &mut self.progress.counts, &mut self.progress.run_output);
            self.progress.done += u32::try_from(rest.len()).unwrap_or(u32::MAX);
            return self.processor.commit_progress(self.delivery, self.prepared, self.progress.clone()).await;
        }
        self.hand_over().await
    }

    /// Whether this run has done any item.
    fn has_progress(&self) -> bool {
        self.progress.done > self.delivery.checkpoint.done
    }

    fn add(&mut self, item: &InputItem, result: Result<ItemOutcome, ItemError>) {
        self.progress.add(item, result, self.processor.limits.output_max_bytes);
        if let Some(suspects) = &mut self.suspects {
            suspects.deaths = 0;
        }
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
            suspects: self.suspects(),
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
