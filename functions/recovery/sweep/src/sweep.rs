//! The sweep: checks every active job from time to time, and sends messages again that a crash lost.
//!
//! Each job row says when the sweep is due (`wakeAt`). Of several sweeps one claims the job, by moving that time on. A
//! message that the sweep sends again may still be in its queue: every receiver accepts a message any number of times.
//! So a wrong guess about a job costs only a few messages. To keep them few, the sweep waits for a time without a sign
//! of life, doubles that time with every recovery, and recovers few tallies at once, beside those that others wait for.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, Stop};
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::{ChunkMessage, SplitMessage};
use rowmill_core::model::task::{Task, TaskId};
use rowmill_core::ports::{Clock, Completion, Due, Entropy, JobStore, PortError, Queue, Tasks, WAKE_SHARDS};
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::breaker::{BreakerSteps, Looked, accounted};
use rowmill_core::progress::commit::resend::ChunkResender;
use rowmill_core::progress::counters::Counters;
use rowmill_core::progress::tasks::{LOOK_AT_CALLED, TaskLooks};
use rowmill_core::progress::update::{end_job, stop_overdue, take_lease, update_job};
use rowmill_core::sending::priority_router::PriorityRouter;

pub use crate::limits::SweepLimits;

/// Number of times that a job is passed over because its chunks may still be queued behind others. After that it is
/// recovered anyway.
const QUEUED_LOOKS: u32 = 2;

/// Time after which a job that waits for slots is tried again. It doubles with each try.
const SLOT_WAIT: Duration = Duration::from_secs(45);

/// Time after which `start-job` looks again for what a job waits for. It doubles with each look.
const AWAITING_LOOK: Duration = Duration::from_secs(60);

/// Maximum number of tasks of a job that one look reads.
const TASKS_OF_LOOK_MAX: usize = 500;

/// Maximum number of tallies of a stopped job one sweep closes, so that other jobs get their turn.
pub(crate) const TALLIES_CLOSED_MAX: usize = 2_000;

/// The use case and the ports it works through.
pub struct Sweeper {
    pub jobs: Arc<dyn JobStore>,
    /// The jobs queue.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    /// The items queues.
    pub chunks: Arc<PriorityRouter<ChunkMessage>>,
    /// The isolate queue, for lost chunks that are isolated.
    pub isolated: Arc<dyn Queue<ChunkMessage>>,
    /// The tasks of workers outside of the stack.
    pub tasks: Arc<dyn Tasks>,
    /// How many holders a job type may have at a time.
    pub type_limits: Arc<JobTypeLimits>,
    pub resender: ChunkResender,
    /// The shared steps: committing a chunk, closing a tally, ending the split.
    pub steps: JobSteps,
    /// Resumes the jobs whose target was down.
    pub breaker: BreakerSteps,
    pub clock: Arc<dyn Clock>,
    /// Names for runs, and jitter.
    pub entropy: Arc<dyn Entropy>,
    pub limits: SweepLimits,
}

/// The metrics of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Swept {
    /// Jobs that were claimed and looked at.
    pub looked_at: u64,
    /// Jobs that showed no sign of life and were recovered.
    pub recovered: u64,
    /// Jobs stopped because their deadline had passed.
    pub overdue: u64,
    /// Messages to split a job or to process a chunk that were sent again.
    pub messages: u64,
    /// Tallies of stopped jobs that were closed without their uncommitted chunks.
    pub tallies_closed: u64,
    /// Jobs whose look failed; they are due again later.
    pub failed: u64,
    /// True if more jobs were due than a sweep may look at.
    pub capped: bool,
}

impl Sweeper {
    /// Looks at the due jobs, the longest due first.
    pub async fn sweep(&self) -> Result<Swept, PortError> {
        let ends_at = self.clock.now() + self.limits.time;
        let mut due = Vec::new();
        for shard in 0..WAKE_SHARDS {
            // One more than the limit shows whether the sweep is capped.
            due.extend(self.jobs.due(shard, self.clock.now(), self.limits.jobs_max + 1).await?);
        }
        due.sort_by_key(|due| due.at);
        let mut swept = Swept { capped: due.len() > self.limits.jobs_max, ..Swept::default() };
        for due in due.into_iter().take(self.limits.jobs_max) {
            if self.clock.now() >= ends_at {
                swept.capped = true;
                break;
            }
            if let Err(error) = self.look_at(due, &mut swept).await {
                swept.failed += 1;
                tracing::warn!(job.id = %due.job, error = &error as &dyn std::error::Error, "job not swept");
            }
        }
        Ok(swept)
    }

    /// Claims a job, does what is due, and sets when it is due next. If this sweep dies on the way, the claim expires
    /// and the job is due again.
    async fn look_at(&self, due: Due, swept: &mut Swept) -> Result<(), PortError> {
        let job = match self.jobs.job(due.job).await {
            Err(PortError::NotFound) => return Ok(()),
            Err(error @ PortError::Invalid { .. }) => {
                // An unreadable row must not be the first one of every sweep.
                self.jobs.put_off(due, self.clock.now() + self.limits.backoff_max).await.ok();
                return Err(error);
            }
            job => job?,
        };
        let claimed_until = self.clock.now() + self.limits.stop.grace;
        let claim = |job: &Job| job.claim(due.at, claimed_until, job.recoveries);
        let Ok(job) = update_job(&*self.jobs, &job, claim).await?.done() else { return Ok(()) };
        if job.is_ended() {
            return Ok(());
        }
        swept.looked_at += 1;
        let (next, recoveries) = self.bring_forward(job.clone(), swept).await?;
        // Refused if the job was stopped or has ended since: then its row says when it is due.
        let now = self.clock.now();
        // The deadline of the row: its owner may have moved it since.
        let release = |job: &Job| job.claim(claimed_until, job.before_deadline(next, now), recoveries);
        update_job(&*self.jobs, &job, release).await?;
        Ok(())
    }

    /// Does what is due. Returns when the job is due next, and its number of recoveries in a row by then.
    async fn bring_forward(&self, job: Job, swept: &mut Swept) -> Result<(Timestamp, u32), PortError> {
        let now = self.clock.now();
        if let Some(grace_ends) =
            job.stopped_by().map(|stop| stop.at + self.limits.stop.grace).filter(|ends| now < *ends)
        {
            return Ok((grace_ends, 0));
        }
        let counters = match Counters::read(&*self.jobs, &job).await {
            Err(error @ PortError::Invalid { .. }) => return self.look_at_unreadable(&job, error, swept).await,
            counters => counters?,
        };
        if !job.is_stopped() && now >= job.stops_at() && !counters.totals.is_complete() {
            if let Some(end) = Completion::of_untaken(&job, &Stop::overdue(&job, now), self.limits.jobs.retention) {
                // If somebody has taken it up meanwhile, it is due again at once.
                swept.overdue += u64::from(end_job(&*self.jobs, &end).await?);
                return Ok((self.clock.now(), job.recoveries));
            }
            let stopped = stop_overdue(&*self.jobs, &job, now).await?;
            swept.overdue += u64::from(stopped.done().is_ok());
            // The stop made the job due at once.
            return Ok((now, 0));
        }
        if job.is_stopped() {
            return self.end_stopped(&job, &counters, swept).await;
        }
        if job.is_paused() {
            return self.look_at_paused(job, &counters, swept).await;
        }
        if job.resend_from.is_some() {
            return self.look_at_resumed(&job, swept).await;
        }
        if job.awaits.is_some() {
            return self.look_at_awaiting(&job, swept).await;
        }
        let called = self.look_at_called(&job, swept).await?;
        let by_then = |at: Timestamp| called.map_or(at, |again| at.min(again));
        let sign_of_life = counters.last_moved().map_or(job.moved_at, |at| at.max(job.moved_at));
        let stale = self.limits.recovery.stale;
        // A service may be silent for days, and its job is looked at often: it is recovered after longer and longer.
        let doubled = if called.is_some() { 2_u32.saturating_pow(job.recoveries) } else { 1 };
        let silent_until = sign_of_life.checked_add(stale.saturating_mul(doubled)).unwrap_or(Timestamp::MAX);
        if now < silent_until {
            let recoveries = if now < sign_of_life + stale { 0 } else { job.recoveries };
            return Ok((by_then(silent_until), recoveries));
        }
        // Chunks of this job may wait in a queue behind others.
        if job.recoveries < QUEUED_LOOKS
            && job.split.tallies > 0
            && (self.chunks.of(job.priority).backlog().await? > 0 || self.isolated.backlog().await? > 0)
        {
            return Ok(self.later(&job, now));
        }
        swept.recovered += 1;
        tracing::warn!(job.id = %job.job_guid, job.attempt, job.recoveries, "job recovered");
        self.recover(&job, &counters, swept).await?;
        let (at, recoveries) = self.later(&job, now);
        Ok((by_then(at), recoveries))
    }

    /// A paused job has no messages to send again, unless the breaker resumes it. But its last chunks may have been
    /// running when it was paused, and the run that committed one of them may have died before the next step.
    async fn look_at_paused(
        &self,
        job: Job,
        counters: &Counters,
        swept: &mut Swept,
    ) -> Result<(Timestamp, u32), PortError> {
        if job.split.done {
            self.steps.split_end.announce(&job).await?;
        }
        for tally in counters.open.iter().filter(|tally| tally.is_closed()) {
            self.steps.committer.close(job.job_guid, &job.owner, tally).await?;
        }
        let now = self.clock.now();
        let (grace, longest) = (self.limits.stop.grace, self.limits.longest_pause);
        let has_rest = !counters.totals.is_complete();
        let stop = |job: &Job| job.stop_long_pause(longest, now).filter(|_| has_rest);
        let bound = |job: &Job| stop(job).or_else(|| job.return_slots(grace, now));
        let job = update_job(&*self.jobs, &job, bound).await?.job();
        if !job.is_paused() {
            // A stop or a resume made the job due at once.
            return Ok((now, 0));
        }
        if job.awaits_slots() {
            return self.resume_awaiting(&job, swept).await;
        }
        if job.breaker_pause().is_none() {
            let (at, recoveries) = self.later(&job, now);
            let pause = if job.has_shared_slots() { grace } else { longest };
            return Ok((job.paused_at.map_or(at, |began| at.min(began + pause)), recoveries));
        }
        match self.breaker.look_at(&job, accounted(counters)).await? {
            Looked::Wait(at) => Ok((at, 0)),
            Looked::Resumed(job) => {
                tracing::info!(job.id = %job.job_guid, job.type_name = job.job_type, "job resumed by the breaker");
                self.send_resumed(&job, swept).await
            }
        }
    }

    /// A job that was resumed when there were no slots for it is tried again, with growing pauses up to `StaleSeconds`.
    async fn resume_awaiting(&self, job: &Job, swept: &mut Swept) -> Result<(Timestamp, u32), PortError> {
        let (epoch, now) = (job.epoch, self.clock.now());
        match update_job(&*self.jobs, job, |job| job.resume_awaiting(epoch, now)).await?.done() {
            Ok(job) if !job.is_paused() => self.send_resumed(&job, swept).await,
            _ => Ok(self.doubled(SLOT_WAIT, self.limits.recovery.stale, job, now)),
        }
    }

    /// A job that waits is told of the end of what it waits for. If that message was lost, this one takes its place; until
    /// then it has no effect.
    async fn look_at_awaiting(&self, job: &Job, swept: &mut Swept) -> Result<(Timestamp, u32), PortError> {
        self.splits.send(&[SplitMessage::of(job)]).await?;
        swept.messages += 1;
        Ok(self.doubled(AWAITING_LOOK, self.limits.recovery.stale, job, self.clock.now()))
    }

    /// If this fails, the job is due again when the claim is over, and its resume is then taken for a lost one.
    async fn send_resumed(&self, job: &Job, swept: &mut Swept) -> Result<(Timestamp, u32), PortError> {
        self.splits.send(&[SplitMessage::of(job)]).await?;
        swept.messages += 1;
        // The resume made the job due at once.
        Ok((self.clock.now(), 0))
    }

    /// A resumed job whose missing chunks are not all sent: `split-job` sends them, and notes each tally. If it has
    /// noted nothing for a while, its message is lost.
    async fn look_at_resumed(&self, job: &Job, swept: &mut Swept) -> Result<(Timestamp, u32), PortError> {
        let (now, grace) = (self.clock.now(), self.limits.stop.grace);
        // Until the runs from before the pause have ended, the message waits. A second one could join the resend.
        let held_back_until = job.paused_at.map_or(job.moved_at, |at| job.moved_at.max(at + grace));
        let silent_until = held_back_until + grace;
        if now < silent_until {
            return Ok((silent_until, job.recoveries));
        }
        self.splits.send(&[SplitMessage::of(job)]).await?;
        swept.messages += 1;
        Ok(self.later(job, now))
    }

    /// When a job without a sign of life is due again: after twice the time of the last look, with jitter.
    pub(crate) fn later(&self, job: &Job, now: Timestamp) -> (Timestamp, u32) {
        self.doubled(self.limits.recovery.stale, self.limits.backoff_max, job, now)
    }

    /// `first`, doubled with each recovery up to `most`, with jitter; and the number of recoveries by then.
    fn doubled(&self, first: Duration, most: Duration, job: &Job, now: Timestamp) -> (Timestamp, u32) {
        let doubled = first.saturating_mul(2_u32.saturating_pow(job.recoveries)).min(most);
        let wait = doubled.mul_f64(0.75 + self.entropy.fraction() / 2.0);
        (now + wait, job.recoveries.saturating_add(1))
    }

    /// Sends again the messages of a running job that may be lost.
    async fn recover(&self, job: &Job, counters: &Counters, swept: &mut Swept) -> Result<(), PortError> {
        let now = self.clock.now();
        if job.status() == Status::Waiting || !job.split.done {
            if job.lease.is_none_or(|lease| lease.until <= now) {
                self.splits.send(&[SplitMessage::of(job)]).await?;
                swept.messages += 1;
            }
        } else {
            self.steps.split_end.announce(job).await?;
        }
        let mut others = 0;
        for tally in counters.due(job) {
            // Others wait for it. There are no more than the job's tallies ahead.
            let is_head = job.tallies_ahead.is_some() && !tally.is_half_done();
            others += u32::from(!is_head);
            if !is_head && others > self.limits.tallies_max {
                continue;
            }
            // The run that resumes the split sends the missing messages of its current tally.
            let is_left_to_split = !job.split.done && tally.number >= job.split.dispatched;
            if tally.is_closed() || !is_left_to_split {
                swept.messages += self.resender.bring_forward(job, tally).await?;
            }
        }
        Ok(())
    }

    /// Ends a stopped job even if it has messages in queues: chunks that are not committed by now do not count.
    async fn end_stopped(
        &self,
        job: &Job,
        counters: &Counters,
        swept: &mut Swept,
    ) -> Result<(Timestamp, u32), PortError> {
        let now = self.clock.now();
        let tasks = self.tasks.of_job(&job.job_type, &job.owner, job.job_guid, None, TASKS_OF_LOOK_MAX).await?;
        if !tasks.is_empty() {
            return Ok((self.give_back_tasks(&tasks, swept).await?, job.recoveries));
        }
        if job.split.done {
            self.steps.split_end.announce(job).await?;
        } else if let Some(until) = self.end_split(job).await? {
            return Ok((until, job.recoveries));
        }
        let open = &counters.open[..counters.open.len().min(TALLIES_CLOSED_MAX)];
        self.steps.committer.close_without_rest(job, open).await?;
        swept.tallies_closed += open.iter().filter(|tally| !tally.is_closed()).count() as u64;
        if counters.open.len() > TALLIES_CLOSED_MAX {
            return Ok((now, job.recoveries));
        }
        Ok(self.later(job, now))
    }

    fn looks(&self) -> TaskLooks<'_> {
        TaskLooks { tasks: &*self.tasks, chunks: &*self.chunks }
    }

    /// Has the services of a job called again that have died or have not got their tasks. Returns when to look again, if
    /// it has any: nobody else looks at them.
    async fn look_at_called(&self, job: &Job, swept: &mut Swept) -> Result<Option<Timestamp>, PortError> {
        if job.split.tallies == 0 {
            return Ok(None);
        }
        let tasks = self.tasks.of_job(&job.job_type, &job.owner, job.job_guid, None, TASKS_OF_LOOK_MAX).await?;
        let now = self.clock.now();
        // No more of them could begin.
        let most = self.type_limits.of(&job.job_type).concurrency.map_or(usize::MAX, |most| most as usize);
        let mut calls = 0;
        for task in tasks.iter().filter(|task| task.called && task.due_at <= now) {
            if calls >= most {
                break;
            }
            let TaskId { job: job_guid, chunk } = task.id();
            let checkpoint = self.jobs.checkpoint(job_guid, chunk).await?;
            let checkpoint = checkpoint.unwrap_or_else(|| Checkpoint::blank(chunk, now));
            if self.looks().is_free(task, Some(job), &checkpoint, now).await? {
                self.looks().call_again(task, now).await?;
                calls += 1;
                swept.messages += 1;
            }
        }
        Ok(tasks.iter().any(|task| task.called).then(|| now + LOOK_AT_CALLED))
    }

    /// Gives the tasks of a stopped job back: `process-items` commits what workers have reported, and skips the rest. A
    /// worker that holds one ends first. Returns when to look again.
    async fn give_back_tasks(&self, tasks: &[Task], swept: &mut Swept) -> Result<Timestamp, PortError> {
        let now = self.clock.now();
        let mut next = now + SLOT_WAIT;
        for task in tasks {
            let TaskId { job, chunk } = task.id();
            let checkpoint = self.jobs.checkpoint(job, chunk).await?;
            match checkpoint.and_then(|checkpoint| checkpoint.held_until()).filter(|until| *until > now) {
                Some(until) => next = next.max(until),
                None => {
                    self.looks().give_back(task).await?;
                    swept.messages += 1;
                }
            }
        }
        Ok(next)
    }

    /// Ends the split of a stopped job whose splitter died. If the splitter may be alive: returns when to try again.
    pub(crate) async fn end_split(&self, job: &Job) -> Result<Option<Timestamp>, PortError> {
        let (run, now) = (self.entropy.run_id(), self.clock.now());
        let has_ended = match take_lease(&*self.jobs, &*self.clock, job, run, self.limits.stop.grace).await?.done() {
            Ok(job) => self.steps.split_end.finish(&job, run, false).await?,
            Err(_) => false,
        };
        let until = job.lease.map_or(now + self.limits.stop.grace, |lease| lease.until.max(now));
        Ok((!has_ended).then_some(until))
    }
}
