//! Processes a chunk, from its message to its commit: prefetch, plan, execute, conclude.
//!
//! A chunk counts once: its commit sets its mark on the tally, on the condition that there is none. Everything before
//! the commit may happen any number of times. Objects of a run that did not win are never read. A run whose time is up
//! before its chunk is done moves the chunk's checkpoint on, and sends a message for the next run.

use std::sync::Arc;

use futures::future::join;
use jiff::Timestamp;
use rowmill_core::items::input::InputError;
use rowmill_core::items::progress::Progress;
use rowmill_core::items::run_output;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::job::{Job, Stop};
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::tally::Committed;
use rowmill_core::model::task::TaskTerms;
use rowmill_core::ports::processor::ItemError;
use rowmill_core::ports::{PortError, found};
use rowmill_core::progress::commit::committer::ChunkCommitter;
use rowmill_core::progress::tasks::LOOK_AT_CALLED;
use rowmill_core::progress::update::{stop_after_commit, stop_attempt, stop_for_input, stop_overdue};

use crate::end::{ChunkEnd, Conclusion, RunError};
use crate::invocation::Invocation;
use crate::isolate;
use crate::lane::LaneHold;
use crate::open_chunk::{ChunkPorts, Delivery, OpenChunk};
use crate::plan::{Facts, Plan, RunMode, Step};
use crate::reports::RunReports;
use crate::run::{RunLimits, Runs};

/// The use case and the ports it works through.
pub struct ChunkProcessor {
    pub ports: ChunkPorts,
    pub committer: ChunkCommitter,
    pub runs: Runs,
    pub reports: RunReports,
    pub lane: LaneHold,
}

impl ChunkProcessor {
    /// Processes and commits the chunk of a message, unless that has been done.
    pub async fn process(
        &self,
        message: &ChunkMessage,
        redelivered: bool,
        deadline: Timestamp,
        invocation: &Invocation,
    ) -> Result<ChunkEnd, RunError> {
        let delivery = Delivery {
            message,
            redelivered,
            run: self.ports.entropy.run_id(),
            time_limit: deadline - self.runs.limits.margin,
            watch: &invocation.watch,
            seat: invocation.commits.seat(message),
            shared: invocation.neighbours.take(message),
        };
        let (plan, checkpoint) = self.prefetch_and_plan(&delivery).await?;
        let mut chunk = OpenChunk::new(&self.ports, &delivery, checkpoint);
        let end = match self.execute(&mut chunk, plan).await {
            Ok(conclusion) => self.conclude(&mut chunk, conclusion).await,
            Err(error) => Err(error),
        };
        if matches!(end, Err(RunError::Port(_))) {
            chunk.withdraw_note().await.ok();
        }
        end
    }

    /// Plans the delivery: reads what the plan depends on, and takes the steps that come first.
    async fn prefetch_and_plan(&self, delivery: &Delivery<'_>) -> Result<(Plan, Option<Checkpoint>), RunError> {
        let (message, jobs) = (delivery.message, &*self.ports.jobs);
        let (job_guid, address) = (message.job_guid, message.address);
        let mut facts = Facts {
            message,
            redelivered: delivery.redelivered,
            type_limits: &self.runs.type_limits,
            job: found(delivery.watch.job(job_guid).await)?,
            tasks: None,
            has_begun: false,
            tally: None,
            checkpoint: None,
        };
        if let Some(job) = facts.job.as_ref().filter(|job| !job.is_past(address.attempt)) {
            facts.tasks = self.tasks(job, message).await?;
        }
        loop {
            let now = self.ports.clock.now();
            let step = match facts.plan(now) {
                Ok(plan) => return Ok((plan, facts.checkpoint)),
                Err(first) => first,
            };
            match step {
                Step::ReadTally => facts.tally = Some(jobs.tally(job_guid, address.attempt, address.tally).await?),
                Step::ReadCheckpoint => {
                    let checkpoint = jobs.checkpoint(job_guid, address).await?;
                    facts.checkpoint = Some(checkpoint.unwrap_or_else(|| Checkpoint::blank(address, now)));
                }
                Step::StopOverdue => {
                    if let Some(job) = &facts.job {
                        facts.job = Some(Arc::new(stop_overdue(jobs, job, now).await?.job()));
                    }
                }
                Step::Begin => {
                    // The spec is read meanwhile; if that fails, the run finds out.
                    let look = facts.tasks.filter(|terms| terms.called).map(|_| LOOK_AT_CALLED);
                    let begin = delivery.watch.begin(job_guid, address.attempt, look);
                    let (job, _) = join(begin, self.runs.prepared.get(message)).await;
                    (facts.job, facts.has_begun) = (Some(job?), true);
                }
            }
        }
    }

    /// The terms of the tasks of this job, if its chunks are tasks. A dry run has no effects, so it has none.
    async fn tasks(&self, job: &Job, message: &ChunkMessage) -> Result<Option<TaskTerms>, PortError> {
        match self.runs.prepared.job_types.terms(&job.job_type) {
            Some(terms) => {
                let is_dry_run = self.runs.prepared.get(message).await?.spec.is_dry_run();
                Ok(Some(terms).filter(|_| !is_dry_run))
            }
            None => Ok(None),
        }
    }

    async fn execute(&self, chunk: &mut OpenChunk<'_>, plan: Plan) -> Result<Conclusion, RunError> {
        let mode = match plan {
            Plan::Conclude(conclusion) => return Ok(conclusion),
            Plan::Run(mode) => mode,
        };
        let error = match self.run(chunk, mode).await {
            Err(RunError::StillFailing { open, error }) => return self.still_failing(chunk, open, error).await,
            Err(error) => error,
            ended => return ended,
        };
        let Some(stop) = stop_after(&error, chunk.delivery.message, &self.runs.limits, self.ports.clock.now()) else {
            return Err(error);
        };
        self.stop(chunk.delivery, &stop).await?;
        Ok(Conclusion::Skip)
    }

    async fn run(&self, chunk: &mut OpenChunk<'_>, mode: RunMode) -> Result<Conclusion, RunError> {
        // Before anything that may kill the process: from now on a dead letter gives the chunk up.
        if matches!(mode, RunMode::Isolated | RunMode::PassOverPoison)
            && chunk.checkpoint.begun != Some(chunk.delivery.message.epoch)
            && let Some(left) = chunk.note(None).await?
        {
            return Ok(left);
        }
        let delivery = chunk.delivery;
        let prepared = self.runs.prepared.get(delivery.message).await?;
        chunk.load(&prepared).await?;
        let run = self.runs.of_chunk(&self.ports, delivery, &prepared);
        match mode {
            RunMode::Plain => {}
            RunMode::Isolated => return isolate::run(chunk, &run).await,
            RunMode::PassOverPoison => return Ok(isolate::pass_over_poison(chunk, &self.runs.limits)),
            RunMode::Called(terms) => return self.call(chunk, &run, &terms).await,
        }
        match run.run(&mut chunk.items, &mut chunk.progress).await {
            Ok(Conclusion::HandOver) if !chunk.has_progress() => {
                Err(RunError::TryAgain("its time was up before any item was done".into()))
            }
            Ok(conclusion) => {
                if conclusion == Conclusion::Commit {
                    self.reports.note_good(&prepared);
                }
                Ok(conclusion)
            }
            // Keep the finished prefix: save a checkpoint, start a fresh delivery count for the rest.
            Err(why @ (RunError::TryAgain(_) | RunError::StillFailing { .. })) if chunk.has_progress() => {
                let message = delivery.message;
                tracing::warn!(job.id = %message.job_guid, chunk.row = message.chunk.first_row, %why, "chunk done in part");
                Ok(Conclusion::HandOver)
            }
            Err(error) => Err(error),
        }
    }

    /// A run that has finished no item because of transient errors.
    async fn still_failing(
        &self,
        chunk: &mut OpenChunk<'_>,
        open: usize,
        error: ItemError,
    ) -> Result<Conclusion, RunError> {
        let deadline = chunk.delivery.time_limit + self.runs.limits.margin;
        if let Some(conclusion) = self.reports.report_failed(chunk, &self.runs.type_limits, &error, deadline).await? {
            // One failed call is no death of the item.
            if chunk.withdraw_note().await.is_err() {
                chunk.withdraw_note().await?;
            }
            return Ok(conclusion);
        }
        match chunk.is_isolated() {
            true => isolate::failed_alone(chunk, open, error, &self.runs.limits).await,
            false => Err(RunError::StillFailing { open, error }),
        }
    }

    async fn stop(&self, delivery: &Delivery<'_>, stop: &Stop) -> Result<(), PortError> {
        let job = delivery.watch.job(delivery.message.job_guid).await?;
        if !job.is_past(delivery.message.address.attempt) {
            stop_attempt(&*self.ports.jobs, &job, stop).await?;
        }
        Ok(())
    }

    /// The one place in which a delivery commits its chunk, hands it over, or acknowledges its message without either.
    async fn conclude(&self, chunk: &mut OpenChunk<'_>, conclusion: Conclusion) -> Result<ChunkEnd, RunError> {
        match conclusion {
            Conclusion::End(end) => Ok(end),
            Conclusion::GiveBack(why) => Err(RunError::TryAgain(why.into())),
            Conclusion::Repeat(tally) => {
                let Delivery { message, redelivered, .. } = *chunk.delivery;
                self.committer.settle(message, &tally, redelivered).await?;
                Ok(ChunkEnd::Repeated)
            }
            Conclusion::Commit => self.commit(chunk, &chunk.progress).await,
            Conclusion::Skip => self.commit(chunk, &chunk.skipped().await?).await,
            Conclusion::HandOver => {
                let next = chunk.hand_over().await?;
                self.ports.send(next).await?;
                Ok(ChunkEnd::Continued)
            }
            Conclusion::Offer(due_at) => {
                self.offer(chunk.delivery, due_at).await?;
                Ok(ChunkEnd::Offered)
            }
            Conclusion::Send(message, end) => {
                self.ports.send(*message).await?;
                Ok(end)
            }
        }
    }

    async fn commit(&self, chunk: &OpenChunk<'_>, progress: &Progress) -> Result<ChunkEnd, RunError> {
        let Delivery { message, seat, .. } = chunk.delivery;
        let Progress { counts, run_output, .. } = progress;
        let (objects, name) = (&*self.ports.objects, self.ports.entropy.run_id());
        let outcomes = (run_output, counts);
        let mark = run_output::put_before_mark(objects, message.job_guid, message.address, name, outcomes).await?;
        let committed = seat.commit(mark, *counts).await?;
        if let Committed::Lost(_) = committed {
            return Ok(ChunkEnd::Repeated);
        }
        if counts.failed > 0 {
            let job = chunk.delivery.watch.job(message.job_guid).await?;
            stop_after_commit(&*self.ports.jobs, &job, committed.tally(), self.ports.clock.now()).await?;
        }
        Ok(ChunkEnd::Committed(*counts))
    }
}

/// Why the job must stop after this error of a run. Its other chunks find it stopped and hold no threads of their own.
fn stop_after(error: &RunError, message: &ChunkMessage, limits: &RunLimits, now: Timestamp) -> Option<Stop> {
    let job_guid = message.job_guid;
    match error {
        RunError::Input(error) => {
            if let InputError::OtherItems { .. } = error {
                tracing::error!(job.id = %job_guid, chunk.row = message.chunk.first_row, %error, "misread");
            }
            stop_for_input(error, message, now)
        }
        RunError::Held { row } => {
            tracing::error!(job.id = %job_guid, item.row = row, "an item holds its thread, its job is stopped");
            Some(Stop::item_timeout(*row, limits.item_timeout, now))
        }
        _ => None,
    }
}
