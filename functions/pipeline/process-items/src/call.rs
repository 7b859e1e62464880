//! Calls a service with the next items of a chunk. It answers at once, or it accepts them and answers later, as a worker
//! does: then the chunk is its task.
//!
//! The note of the items comes first, and then the task, because a service may finish before its call is answered. The
//! service has not begun as long as nobody knows that it has them: if this process dies, that is no death of theirs.

use jiff::Timestamp;
use rowmill_core::items::input::InputItem;
use rowmill_core::items::of_task::{fitting, too_large};
use rowmill_core::model::checkpoint::InFlight;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::permit::PermitSeen;
use rowmill_core::model::task::{Task, TaskId, TaskTerms};
use rowmill_core::ports::processor::{HandedOver, Item, ItemError, ItemOutcome};
use rowmill_core::ports::{PortError, TargetTask};
use rowmill_core::progress::permits::{self, PermitLooks};
use rowmill_core::progress::tasks;

use crate::end::{ChunkEnd, Conclusion, RunError};
use crate::open_chunk::{Delivery, OpenChunk};
use crate::process::ChunkProcessor;
use crate::run::ChunkRun;

impl ChunkProcessor {
    pub(crate) async fn call(
        &self,
        chunk: &mut OpenChunk<'_>,
        run: &ChunkRun<'_>,
        terms: &TaskTerms,
    ) -> Result<Conclusion, RunError> {
        pass_over_others(chunk, run);
        if let Some(end) = run.ended().await? {
            return Ok(end);
        }
        let batch = next(chunk, terms);
        if batch.is_empty() {
            return Ok(if chunk.rest().is_empty() { Conclusion::Commit } else { Conclusion::HandOver });
        }
        // The service has not got them after this invocation has ended. Then it has its time.
        let until = run.time_limit + run.limits.margin * 2 + terms.patience();
        let deaths = chunk.suspects().map_or(0, |suspects| suspects.deaths);
        let note = InFlight { until, deaths, items: batch.len() as u32, unconfirmed: true };
        let mut permit = None;
        if let Some(most) = self.runs.type_limits.of(&run.prepared.spec.job_type).concurrency {
            permit = self.free_permit(chunk.delivery, run, most).await?;
            if permit.is_none() {
                // The next service that ends has the next task called.
                return self.wait(chunk.delivery).await;
            }
        }
        if !chunk.lease(note, permit.as_ref()).await? {
            // Another run was faster.
            return self.wait(chunk.delivery).await;
        }
        self.offer(chunk.delivery, until).await?;
        // This process may have stood still since it looked. The note is no death, and the task is looked at.
        if let Some(end) = run.ended().await? {
            return Ok(end);
        }
        let confirmed = |until| Some(InFlight { until, unconfirmed: false, ..note });
        match self.hand_over(run, chunk.delivery, &batch, terms).await {
            HandedOver::Accepted => {
                self.reports.note_good(run.prepared);
                // If the service was faster, it holds the task already.
                chunk.note(confirmed(run.clock.now() + terms.patience())).await.ok();
            }
            HandedOver::Unknown(error) => {
                // If it beats, it has them. If not, that is a death of theirs.
                chunk.note(confirmed(until)).await.ok();
                let deadline = run.time_limit + run.limits.margin;
                let reported = self.reports.report_failed(chunk, &self.runs.type_limits, &error, deadline).await;
                if let Ok(Some(end)) = reported {
                    return Ok(end);
                }
            }
            HandedOver::Answered(results) => return self.answered(chunk, run, &batch, results).await,
        }
        Ok(Conclusion::End(ChunkEnd::Offered))
    }

    async fn hand_over(
        &self,
        run: &ChunkRun<'_>,
        delivery: &Delivery<'_>,
        batch: &[InputItem],
        terms: &TaskTerms,
    ) -> HandedOver {
        let items: Vec<Item> = batch.iter().filter_map(|item| item.clone().well_formed(run.job_guid)).collect();
        let call = run.prepared.processor.hand_over(&items, TargetTask::of(id_of(delivery), delivery.run, terms));
        let in_time = run.before(run.time_limit + run.limits.margin / 2, call).await;
        in_time.unwrap_or_else(|| HandedOver::Unknown(ItemError::transient("timeout", "the call took too long")))
    }

    /// The service has answered at once: its results count as those of any run.
    async fn answered(
        &self,
        chunk: &mut OpenChunk<'_>,
        run: &ChunkRun<'_>,
        batch: &[InputItem],
        results: Vec<Result<ItemOutcome, ItemError>>,
    ) -> Result<Conclusion, RunError> {
        let mut results = results.into_iter();
        let mut failing = None;
        for item in batch {
            let result = match &item.record {
                Err(_) => Ok(ItemOutcome::Succeeded),
                Ok(_) => {
                    results.next().unwrap_or_else(|| Err(ItemError::transient("no_result", "it was not answered")))
                }
            };
            match result {
                Err(error) if error.transient => {
                    failing = Some(error);
                    break;
                }
                result => chunk.add(item, result, run.limits.output_max_bytes),
            }
        }
        let open = chunk.rest().len();
        if let Some(error) = failing.filter(|_| !chunk.has_progress()) {
            if chunk.note(None).await?.is_some() {
                // The service has beaten all the same.
                return Ok(Conclusion::End(ChunkEnd::Offered));
            }
            self.remove_task(chunk.delivery).await?;
            permits::give_back(&*self.ports.jobs, &run.prepared.spec.job_type, chunk.delivery.run).await?;
            return Err(RunError::StillFailing { open, error });
        }
        self.reports.note_good(run.prepared);
        // The message is still there, should this process die.
        self.remove_task(chunk.delivery).await?;
        Ok(if open == 0 { Conclusion::Commit } else { Conclusion::HandOver })
    }

    /// A permit for the call, if one of these many is free.
    async fn free_permit(
        &self,
        delivery: &Delivery<'_>,
        run: &ChunkRun<'_>,
        most: u32,
    ) -> Result<Option<PermitSeen>, PortError> {
        let (jobs, committer) = (&*self.ports.jobs, &self.committer);
        let (name, now, chance) = (run.entropy.run_id(), run.clock.now(), run.entropy.fraction());
        let looks = PermitLooks { jobs, committer, run: name, now, chance };
        looks.find(&run.prepared.spec.job_type, most, Some(id_of(delivery))).await
    }

    /// Leaves the chunk to the next look at its task, which is due now.
    async fn wait(&self, delivery: &Delivery<'_>) -> Result<Conclusion, RunError> {
        let now = self.ports.clock.now();
        self.offer(delivery, now).await?;
        let job = delivery.watch.job(delivery.message.job_guid).await?;
        let task = self.ports.tasks.task(&job.job_type, &job.owner, id_of(delivery)).await?;
        if let Some(task) = task.filter(|task| task.due_at > now) {
            self.ports.tasks.put_off(&task, now, None).await?;
        }
        Ok(Conclusion::End(ChunkEnd::Offered))
    }

    async fn remove_task(&self, delivery: &Delivery<'_>) -> Result<(), PortError> {
        let job = delivery.watch.job(delivery.message.job_guid).await?;
        tasks::remove(&*self.ports.tasks, &job, id_of(delivery)).await
    }

    /// Makes a task of the chunk, which is looked at from this time on.
    pub(crate) async fn offer(&self, delivery: &Delivery<'_>, due_at: Timestamp) -> Result<(), PortError> {
        // It comes back with what its holders have done of it.
        let message = ChunkMessage { delivery_mode: DeliveryMode::Recovered, ..delivery.message.clone() };
        let job = delivery.watch.job(message.job_guid).await?;
        let called = self.runs.prepared.job_types.terms(&job.job_type).is_some_and(|terms| terms.called);
        let task = Task { job_type: job.job_type.clone(), message, due_at, called, holder: None };
        self.ports.tasks.offer(&task, self.ports.clock.now()).await
    }
}

fn id_of(delivery: &Delivery<'_>) -> TaskId {
    TaskId { job: delivery.message.job_guid, chunk: delivery.message.address }
}

/// Settles the next items that no service gets: the malformed ones, and those that are too large.
fn pass_over_others(chunk: &mut OpenChunk<'_>, run: &ChunkRun<'_>) {
    while let Some(item) = chunk.rest().first().cloned() {
        let result = match &item.record {
            Err(_) => Ok(ItemOutcome::Succeeded),
            Ok(_) if fitting(std::slice::from_ref(&item)) == 0 => Err(too_large()),
            Ok(_) => break,
        };
        chunk.add(&item, result, run.limits.output_max_bytes);
    }
}

/// The next items that go to the service together.
fn next(chunk: &OpenChunk<'_>, terms: &TaskTerms) -> Vec<InputItem> {
    let most = if chunk.is_isolated() { 1 } else { terms.items };
    let together = chunk.suspects().and_then(|suspects| suspects.together(chunk.progress.done));
    let rest = chunk.rest();
    let most = rest.len().min(most.min(together.unwrap_or(u32::MAX)) as usize);
    rest[..fitting(&rest[..most])].to_vec()
}
