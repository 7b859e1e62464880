//! Takes the outcomes of a task.
//!
//! The outcomes are stored as a run output, and then the checkpoint moves: it counts them, under the condition that the
//! holder's token stands and nobody has moved it since it was read. So each outcome counts once, and only that of the
//! holder. When all items of the chunk are done, the chunk is committed like any other. If this process dies before
//! that, the worker repeats its report; if it has died too, `process-items` finds a chunk that only lacks its commit.

use rowmill_api::task::TaskOrder;
use rowmill_core::items::input::InputItem;
use rowmill_core::items::progress::Progress;
use rowmill_core::items::run_output;
use rowmill_core::job_types::target_type::{Results, read_answer};
use rowmill_core::model::checkpoint::{Checkpoint, FAILURES_MAX, InFlight, Suspects};
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::tally::{Committed, Counts, Mark};
use rowmill_core::model::task::{Task, TaskId};
use rowmill_core::ports::PortError;
use rowmill_core::ports::processor::{Item, ItemOutcome};
use rowmill_core::progress::tasks;
use rowmill_core::progress::update::stop_after_commit;

use crate::error::TaskError;
use crate::hold::{Held, order_for};
use crate::lend::TaskWork;

impl TaskWork {
    /// Takes the outcomes of these items of a task, or of all that are left if none are named. `answer` is what a target
    /// would answer. Repeating a report changes nothing.
    ///
    /// # Errors
    /// `Gone`; `BadOutcomes`, `OtherItems`: nothing is taken; `Port`: send the report again.
    pub async fn report(
        &self,
        id: TaskId,
        token: RunId,
        identifiers: Option<&[String]>,
        answer: &[u8],
    ) -> Result<TaskOrder, TaskError> {
        let Held { job, checkpoint } = self.held(id, token).await?;
        let Task { message, called, .. } = match self.row(&job, id).await {
            // It is committed.
            Err(TaskError::Gone(_)) if checkpoint.held_by(token).is_none() => return Ok(TaskOrder::Finished),
            row => row?,
        };
        match checkpoint.held_by(token) {
            None => {
                let progress = self.progress(id, &checkpoint).await?;
                return self.conclude(&job, &message, &checkpoint, &progress).await;
            }
            // A service that is called begins by that.
            Some(note) if note.unconfirmed && !called => return Err(TaskError::NotBegun(id)),
            Some(_) => {}
        }
        let spec = self.jobs.spec(id.job).await?;
        let items = self.items(&spec, &message).await?;
        let (done, rest) = items.split_at((checkpoint.done as usize).min(items.len()));
        let batch = &rest[..rest.len().min(checkpoint.in_flight.map_or(0, |note| note.items as usize))];
        let open = names(id, batch);
        let reported = match identifiers {
            None => open.as_slice(),
            Some(named) if open.starts_with(named) => named,
            // Its reply was lost.
            Some(named) if names(id, done).ends_with(named) => return Ok(order_for(&job)),
            Some(named) => return Err(other_items(named, &open)),
        };
        let reported: Vec<&str> = reported.iter().map(String::as_str).collect();
        let results = read_answer(answer, &reported, spec.output.is_some())?;
        self.advance(&job, &message, &checkpoint, batch, results).await
    }

    /// Adds these results of the next well-formed items of a batch, and those of the malformed ones among them.
    pub(crate) async fn advance(
        &self,
        job: &Job,
        message: &ChunkMessage,
        held: &Checkpoint,
        batch: &[InputItem],
        results: Results,
    ) -> Result<TaskOrder, TaskError> {
        let id = TaskId { job: message.job_guid, chunk: message.address };
        let (Some(by), Some(note)) = (held.by, held.in_flight) else { return Err(TaskError::Gone(id)) };
        let mut progress = self.progress(id, held).await?;
        let lines = progress.lines();
        let failures = self.add(&mut progress, held, batch, results);
        let (now, order, terms) = (self.clock.now(), order_for(job), self.terms(job, id)?);
        let reported = progress.done - held.done;
        let left = InFlight {
            // The time of a worker that is to stop is not extended.
            until: if order == TaskOrder::Continue { now + terms.patience() } else { note.until },
            deaths: if reported == 0 { note.deaths } else { 0 },
            items: note.items.saturating_sub(reported),
            unconfirmed: false,
        };
        let suspects = held.suspects.filter(|suspects| suspects.concern(progress.done));
        let suspects = match reported {
            0 => suspects,
            _ => suspects.map(|suspects| Suspects { deaths: 0, failures: 0, ..suspects }),
        };
        let moved = Checkpoint {
            done: progress.done,
            counts: progress.counts,
            run_output: match progress.lines() == lines {
                true => held.run_output,
                false => {
                    let name = self.entropy.run_id();
                    run_output::put(&*self.objects, id.job, id.chunk, name, &progress.run_output).await?;
                    Some(name)
                }
            },
            in_flight: Some(left).filter(|left| left.items > 0 && failures.is_none()),
            suspects: match failures {
                Some(failures) => Some(Suspects { failures, ..suspects.unwrap_or(Suspects::after(progress.done, 1)) }),
                None => suspects,
            },
            ..held.moved(by, now)
        };
        self.move_to(id, &moved).await?;
        match moved.in_flight {
            Some(_) => Ok(order),
            None => self.conclude(job, message, &moved, &progress).await,
        }
    }

    /// Adds results to the progress, up to an item with a transient error: it is lent again, unless it has failed so at
    /// several leases. Returns how often it has.
    fn add(&self, progress: &mut Progress, held: &Checkpoint, batch: &[InputItem], results: Results) -> Option<u32> {
        let mut results = results.into_iter();
        for item in batch {
            let result = match &item.record {
                Err(_) => Ok(ItemOutcome::Succeeded),
                Ok(_) => results.next()?,
            };
            if result.as_ref().is_err_and(|error| error.transient) {
                let known = held.suspects.filter(|known| known.concern(progress.done) && progress.done == held.done);
                let failed = known.map_or(0, |known| known.failures) + 1;
                if failed < FAILURES_MAX {
                    return Some(failed);
                }
            }
            progress.add(item, result, self.output_max_bytes);
        }
        None
    }

    /// Commits a chunk whose items are all done. The rest of another one waits for the next worker.
    async fn conclude(
        &self,
        job: &Job,
        message: &ChunkMessage,
        checkpoint: &Checkpoint,
        progress: &Progress,
    ) -> Result<TaskOrder, TaskError> {
        let id = TaskId { job: message.job_guid, chunk: message.address };
        if checkpoint.done < message.chunk.items {
            self.is_due(job, id).await?;
            self.end_permit_of(job, checkpoint).await?;
            return Ok(TaskOrder::Finished);
        }
        // The same mark at each try, so that a repetition recognises it.
        if let Some(run) = checkpoint.run_output.or(checkpoint.by) {
            let Progress { counts, run_output, .. } = progress;
            self.commit(job, message, Mark { kind: run_output.mark_kind(counts), run }, *counts).await?;
        }
        tasks::remove(&*self.tasks, job, id).await?;
        self.end_permit_of(job, checkpoint).await?;
        Ok(TaskOrder::Finished)
    }

    async fn end_permit_of(&self, job: &Job, checkpoint: &Checkpoint) -> Result<(), TaskError> {
        match checkpoint.by {
            Some(token) => self.end_permit(&job.job_type, token).await,
            None => Ok(()),
        }
    }

    async fn commit(&self, job: &Job, message: &ChunkMessage, mark: Mark, counts: Counts) -> Result<(), PortError> {
        let committed = self.committer.commit(message, mark, counts).await?;
        if let Committed::Lost(tally) = &committed {
            return self.committer.settle(message, tally, true).await;
        }
        match counts.failed {
            0 => Ok(()),
            _ => stop_after_commit(&*self.jobs, job, committed.tally(), self.clock.now()).await,
        }
    }
}

/// The names of those of the items that workers get.
fn names(id: TaskId, items: &[InputItem]) -> Vec<String> {
    items.iter().filter(|item| item.record.is_ok()).map(|item| Item::identifier(id.job, item.row)).collect()
}

fn other_items(named: &[String], open: &[String]) -> TaskError {
    let place = named.iter().zip(open).take_while(|(named, open)| named == open).count();
    let expected = open.get(place).map_or_else(|| "nothing".to_owned(), |open| format!("`{open}`"));
    TaskError::OtherItems { place, expected }
}
