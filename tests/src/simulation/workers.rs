//! The workers outside of the stack: each leases a task, processes its items and reports them, as `docs/workers.md` says.
//! They die, they stall, their calls fail, and some report twice or give a task back. Services that answer later do the
//! same with the tasks that they are called with.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_api::task::TaskOrder;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::ChunkAddress;
use rowmill_core::model::task::TaskTerms;
use rowmill_core::ports::processor::{Item, ItemError};
use serde_json::{Value, json};
use work_task::error::TaskError;
use work_task::lend::{Lent, TaskWork};

use super::checks::{Checked, ensure, now};
use super::functions::{Function, Invocation, Reply, Work};
use super::hub::{CallKind, Hub};
use super::invariants::Invariants;
use super::items::{Simulated, WORKED, output_of};
use super::plan::Plan;
use super::run::Run;
use super::trace::{chunk_name, job_name};

/// The longest time that a worker is at a task; then its machine is taken away.
const LONGEST: Duration = Duration::from_secs(7200);

/// Number of tries of a report.
const TRIES: usize = 4;

/// Terms of the tasks of a seed.
pub fn terms(plan: &Plan) -> TaskTerms {
    TaskTerms {
        beat: Duration::from_secs(20),
        items: plan.task_items,
        called: plan.calls_services,
        minimum_client: None,
    }
}

impl Run {
    /// Hires a worker if a task is due, and not all of them are at work. A service begins with what it was called with.
    pub(super) fn hire(&mut self) -> bool {
        if self.plan.calls_services {
            let calls = self.world.worked.take_calls();
            let has_calls = !calls.is_empty();
            calls.into_iter().for_each(|call| self.begin_turn(Some(call)));
            return has_calls;
        }
        let now = self.world.hub.now();
        let at_work = self.tasks.iter().filter(|(_, invocation)| invocation.function == Function::Worker).count();
        let is_due = self.world.tasks.every_task().iter().any(|task| task.due_at <= now);
        if at_work >= self.plan.holders || !is_due {
            return false;
        }
        self.begin_turn(None);
        true
    }

    fn begin_turn(&mut self, called: Option<(Lent, Timestamp)>) {
        let now = self.world.hub.now();
        let turn = Turn {
            work: Arc::clone(&self.world.task_work),
            items: self.world.worked.clone(),
            hub: self.world.hub.clone(),
            invariants: Arc::clone(&self.world.invariants),
        };
        let number = self.tasks.next_number();
        self.world.hub.tell(Some(number), || "a worker begins".into());
        let (deadline, stalled_until) = (now + LONGEST, now);
        let invocation = Invocation {
            function: Function::Worker,
            work: Work::Worker,
            deadline,
            zombie: false,
            stalled_until,
            process: None,
        };
        self.tasks.spawn(invocation, async move { turn.take(called).await });
    }
}

/// A worker's turn at one task.
struct Turn {
    work: Arc<TaskWork>,
    items: Simulated,
    hub: Hub,
    invariants: Arc<Invariants>,
}

/// Why a worker stops at an item.
enum Ended {
    /// It was told to, by an order.
    Told,
    /// Its time is over, or the task is another worker's.
    Lost,
}

/// A task at which a worker is.
struct AtTask {
    lent: Lent,
    /// When it sent its last accepted beat.
    sent: Timestamp,
    /// The items that are done and not reported.
    done: Vec<(String, Result<Value, ItemError>)>,
}

impl Turn {
    /// Works on a task: the one it is called with, or one that it leases.
    async fn take(self, called: Option<(Lent, Timestamp)>) -> Reply {
        let sent = called.as_ref().map_or_else(|| self.hub.now(), |(_, at)| *at);
        let lent = match called {
            Some((lent, _)) => Ok(Some(lent)),
            None => {
                self.invariants.asks(self.hub.current());
                self.call("lease", self.work.lend(WORKED, "worker")).await
            }
        };
        let lent = match lent {
            Ok(Some(lent)) => lent,
            Ok(None) => return Reply::Done("nothing to do".into()),
            Err(error) => return Reply::Failed(error.to_string()),
        };
        let (task, job, chunk) = (self.hub.current(), lent.id.job, lent.id.chunk);
        self.invariants.lent(task, job, chunk);
        let ended = self.work_on(AtTask { sent, lent, done: Vec::new() }).await;
        self.invariants.is_handed_in(task, matches!(ended, Reply::Done(_)));
        ended
    }

    async fn work_on(&self, mut at: AtTask) -> Reply {
        let mood = at.lent.token.as_bytes()[6];
        // The first beat comes before the first item. A service that is called may begin at once.
        let begins_at_once = at.lent.terms.called
            && mood & 32 == 0
            && self.invariants.may_begin(self.hub.current(), at.lent.id.job).is_ok();
        let first = if begins_at_once { Ok(()) } else { self.beat(&mut at, true).await };
        match first {
            Ok(()) => {}
            Err(Ended::Told) => return self.give_back(&at, false).await,
            Err(Ended::Lost) => return Reply::Failed("it never began".into()),
        }
        for item in at.lent.items.clone() {
            match self.item(&mut at, &item).await {
                Ok(result) => at.done.push((item.idempotency_key(), result)),
                Err(Ended::Told) => return self.give_back(&at, false).await,
                Err(Ended::Lost) => return Reply::Failed("it lost its task".into()),
            }
            if mood % 8 == 1 {
                return self.give_back(&at, mood > 128).await;
            }
            if mood % 4 == 2 && self.beat(&mut at, false).await.is_err() {
                return self.give_back(&at, false).await;
            }
        }
        let report = outcomes(&at.done);
        for time in 0..TRIES {
            match self.call("finish", self.work.report(at.lent.id, at.lent.token, None, &report)).await {
                Ok(_) if mood % 4 == 3 && time == 0 => self.invariants.reach("a worker reports twice"),
                Ok(order) => return Reply::Done(format!("{order:?}")),
                Err(TaskError::Gone(_)) => return Reply::Failed("its report came too late".into()),
                Err(TaskError::Port(_)) => self.hub.sleep(Duration::from_secs(1)).await,
                Err(error) => {
                    self.hub.violate(|| format!("a right report is refused: {error}"));
                    return Reply::Refused(error.to_string());
                }
            }
        }
        Reply::Failed("its report fails".into())
    }

    /// Beats, and reports the items that are done.
    async fn beat(&self, at: &mut AtTask, is_first: bool) -> Result<(), Ended> {
        let (id, token) = (at.lent.id, at.lent.token);
        loop {
            let sent = self.hub.now();
            let beaten = match at.done.is_empty() {
                true => self.call("beat", self.work.beat(id, token)).await.map(|(order, _)| order),
                false => {
                    let names: Vec<String> = at.done.iter().map(|(name, _)| name.clone()).collect();
                    let report = outcomes(&at.done);
                    self.call("report", self.work.report(id, token, Some(&names), &report)).await
                }
            };
            match beaten {
                Ok(TaskOrder::Continue) => {
                    self.invariants.reach(if at.done.is_empty() { "beat" } else { "items reported" });
                    at.done.clear();
                    at.sent = sent;
                    self.invariants.worker_keeps(self.hub.current(), sent + at.lent.terms.patience());
                    return Ok(());
                }
                Ok(TaskOrder::Paused | TaskOrder::Stopping) => {
                    self.invariants.reach("a worker is told to stop");
                    at.done.clear();
                    return Err(Ended::Told);
                }
                Ok(TaskOrder::Finished) | Err(TaskError::Gone(_)) => return Err(Ended::Lost),
                Err(_) if is_first || self.hub.now() >= at.sent + at.lent.terms.patience() => return Err(Ended::Lost),
                Err(_) => self.hub.sleep(Duration::from_secs(1)).await,
            }
        }
    }

    /// Processes an item; beats while it lasts. A worker whose time is over drops it.
    async fn item(&self, at: &mut AtTask, item: &Item) -> Result<Result<Value, ItemError>, Ended> {
        let task = self.hub.current();
        let over = at.sent + at.lent.terms.patience();
        if self.hub.now() >= over {
            return Err(Ended::Lost);
        }
        self.hub.check(self.invariants.worker_begins(task, item.job_guid, self.hub.now(), over));
        let ended = self.process(at, item).await;
        self.invariants.worker_ends(task);
        ended
    }

    async fn process(&self, at: &mut AtTask, item: &Item) -> Result<Result<Value, ItemError>, Ended> {
        let mut left = self.items.begin_work(item).await;
        let half = at.lent.terms.beat / 2;
        while !left.is_zero() {
            let over = at.sent + at.lent.terms.patience();
            let time = Duration::try_from(over.duration_since(self.hub.now())).unwrap_or_default();
            let piece = left.min(half).min(time);
            self.hub.sleep(piece).await;
            left -= piece;
            if self.hub.now() >= over {
                return Err(Ended::Lost);
            }
            if !left.is_zero() {
                // The report of a transient failure gives the task back, so it waits for the end of this item.
                let waits = at.done.iter().any(|(_, result)| result.as_ref().is_err_and(|error| error.transient));
                let held_back = if waits { std::mem::take(&mut at.done) } else { Vec::new() };
                let beaten = self.beat(at, false).await;
                at.done.extend(held_back);
                beaten?;
            }
        }
        Ok(self.items.end_work(item).map(|()| json!({ "row": output_of(item.row) })))
    }

    async fn give_back(&self, at: &AtTask, failed: bool) -> Reply {
        self.invariants.reach("a worker gives its task back");
        for _ in 0..TRIES {
            match self.call("release", self.work.release(at.lent.id, at.lent.token, failed)).await {
                Ok(()) if failed => return Reply::Failed("it failed".into()),
                Ok(()) => return Reply::Done("given back".into()),
                Err(TaskError::Gone(_)) => break,
                Err(_) => self.hub.sleep(Duration::from_secs(1)).await,
            }
        }
        Reply::Failed("it cannot give its task back".into())
    }

    /// A call of the API: the invocation behind it dies with the worker or alone, or its reply is lost.
    async fn call<T: super::trace::Brief>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T, TaskError>>,
    ) -> Result<T, TaskError> {
        self.hub.through(CallKind::Write, name, String::new, work).await
    }
}

/// Outcomes as a worker sends them.
fn outcomes(done: &[(String, Result<Value, ItemError>)]) -> Vec<u8> {
    let failures = done.iter().filter_map(|(name, result)| {
        let error = result.as_ref().err()?;
        Some(json!({
            "itemIdentifier": name, "code": error.code, "message": error.message, "column": error.column,
            "transient": error.transient,
        }))
    });
    let outputs = done
        .iter()
        .filter_map(|(name, result)| Some(json!({ "itemIdentifier": name, "output": result.as_ref().ok()? })));
    let answer = json!({
        "batchItemFailures": failures.collect::<Vec<Value>>(), "outputs": outputs.collect::<Vec<Value>>(),
    });
    answer.to_string().into_bytes()
}

/// A worker's knowledge of its task.
#[derive(Clone, Debug)]
pub struct WorkerAtTask {
    job: JobGuid,
    chunk: ChunkAddress,
    /// Until when it may be at an item; it stops by then, also while it waits for the answer to a beat.
    at_item: Option<Timestamp>,
}

impl Invariants {
    /// A worker has leased a task.
    pub fn lent(&self, task: u64, job: JobGuid, chunk: ChunkAddress) {
        self.reach("task lent");
        self.delivered(task, job, chunk.attempt, true);
        self.known().asking.remove(&task);
        self.known().workers.insert(task, WorkerAtTask { job, chunk, at_item: None });
    }

    /// A worker begins an item: as for a run of `process-items`, and no other worker is at an item of its chunk.
    pub fn worker_begins(&self, task: u64, job: JobGuid, at: Timestamp, until: Timestamp) -> Checked {
        self.may_begin(task, job)?;
        let mut known = self.known();
        let Some(worker) = known.workers.get_mut(&task) else { return Ok(()) };
        worker.at_item = Some(until);
        let (job, chunk) = (worker.job, worker.chunk);
        let is_at_it = |other: &&WorkerAtTask| {
            (other.job, other.chunk) == (job, chunk) && other.at_item.is_some_and(|until| until > at)
        };
        let at_it = known.workers.values().filter(is_at_it);
        ensure(at_it.count() == 1, || {
            format!("{} {}: two workers are at its items at once", job_name(job), chunk_name(chunk))
        })?;
        let Some(most) = self.type_limits.of(WORKED).concurrency else { return Ok(()) };
        let holders = known.workers.values().filter(|worker| worker.at_item.is_some_and(|until| until > at)).count();
        if holders == most as usize {
            *known.reached.entry("all permits in use".to_owned()).or_default() += 1;
        }
        ensure(holders <= most as usize, || format!("{holders} workers are at items at once, with {most} permits"))
    }

    /// A beat of a worker is accepted: if it is at an item, it may be until this time.
    pub fn worker_keeps(&self, task: u64, until: Timestamp) {
        if let Some(at_item) = self.known().workers.get_mut(&task).and_then(|worker| worker.at_item.as_mut()) {
            *at_item = until;
        }
    }

    pub fn worker_ends(&self, task: u64) {
        if let Some(worker) = self.known().workers.get_mut(&task) {
            worker.at_item = None;
        }
    }

    /// A worker has ended: its task is in other hands, or it counts as dead at its items.
    pub fn is_handed_in(&self, task: u64, is_handed_in: bool) {
        let worker = self.known().workers.remove(&task);
        if let Some(WorkerAtTask { job, chunk, .. }) = worker
            && !is_handed_in
        {
            self.died_at(job, chunk);
        }
    }

    /// A worker asks for a task.
    pub fn asks(&self, task: u64) {
        self.known().asking.insert(task);
    }

    /// True if a worker that has no task yet looks at one of this job.
    pub(super) fn leases(&self, task: u64, job: JobGuid) -> bool {
        self.known().asking.contains(&task) && self.is_worked(job)
    }

    /// True if workers process the items of this job.
    pub(super) fn is_worked(&self, job: JobGuid) -> bool {
        now(rowmill_core::ports::Jobs::job(&*self.store, job)).is_ok_and(|row| row.job_type == WORKED)
    }
}
