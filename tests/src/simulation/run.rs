//! A run: one decision of the adversary after the other, until every job has ended or an invariant is violated.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::ChunkAddress;

use super::adversary::{Adversary, Fate};
use super::broken::Broken;
use super::functions::{Function, Invocation, Reply};
use super::invariants::Reached;
use super::plan::{Operation, Plan, Planned, SWEEP_EVERY};
use super::queues::{Body, Delivery, QueueName};
use super::tasks::Tasks;
use super::trace::{Trace, job_name};
use super::world::World;

/// The most sweeps after the last fault in which no further row is processed, until every job has ended.
const SWEEPS_MAX: u64 = 300;

/// The most steps of a run; a run with more counts as endless. Seed 1200426809 ends after 420,181: many workers ask for
/// the one task that their type may have at a time.
const STEPS_MAX: u64 = 1_000_000;

pub struct Run {
    pub(super) world: World,
    pub(super) plan: Plan,
    pub(super) adversary: Adversary,
    pub(super) tasks: Tasks<Reply, Invocation>,
    pub(super) operations: Vec<Planned>,
    /// Processes of `process-items` that wait for work.
    pub(super) idle: Vec<Arc<process_items::process::ChunkProcessor>>,
    pub(super) step: u64,
    broken: Broken,
    next_sweep: Timestamp,
    /// Deliveries whose poller is throttled, and when their function is invoked.
    late: Vec<(Timestamp, Delivery)>,
    /// Sweeps since the last fault, and since a row was processed for the first time.
    calm_sweeps: u64,
    /// The most of these.
    most_calm_sweeps: u64,
    /// The rows that were processed at the last sweep.
    processed: usize,
    pub(super) corrected_files: u128,
    /// The job that each idempotency key created.
    pub(super) created: BTreeMap<String, JobGuid>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub violation: Option<String>,
    pub steps: u64,
    pub jobs: usize,
    /// Attempts of all jobs.
    pub attempts: u32,
    /// The most sweeps after the last fault in which no further row was processed.
    pub calm_sweeps: u64,
    pub reached: Reached,
}

/// When every run begins.
fn beginning() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A recovery that happened though nothing went wrong, if there is one.
fn unneeded_recovery(reached: &Reached) -> Option<String> {
    let recoveries = ["chunk sent again", "commit lost", "time out", "Sweep: recovered", "Process: Repeated"];
    let found =
        reached.keys().find(|place| recoveries.contains(&place.as_str()) || place.starts_with("dead letter"))?;
    Some(format!("nothing went wrong, and yet: {found}"))
}

impl Run {
    pub fn new(seed: u64, broken: Broken, traced: bool) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let plan = Plan::of(&mut rng);
        let began = beginning();
        let trace = if traced { Trace::kept(began) } else { Trace::none() };
        let world = World::new(&plan, seed, broken, began, trace);
        let mut run = Self {
            adversary: Adversary::new(rng, plan.faults),
            tasks: Tasks::new(world.hub.clone()),
            operations: plan.operations.clone(),
            idle: Vec::new(),
            step: 0,
            broken,
            next_sweep: began + SWEEP_EVERY,
            late: Vec::new(),
            calm_sweeps: 0,
            most_calm_sweeps: 0,
            processed: 0,
            corrected_files: 0,
            created: BTreeMap::new(),
            world,
            plan,
        };
        run.upload_files();
        run
    }

    pub fn run(&mut self) -> Outcome {
        let mut violation = None;
        while violation.is_none() && !self.is_over() {
            self.step += 1;
            self.take_step();
            violation = self.world.hub.violation().or_else(|| self.is_endless());
        }
        let violation = violation.or_else(|| self.world.invariants.at_the_end().err());
        let reached = self.world.invariants.take_reached();
        let violation =
            violation.or_else(|| self.plan.is_without_trouble().then(|| unneeded_recovery(&reached)).flatten());
        let jobs = self.world.store.every_job();
        let violation = violation.or_else(|| self.world.invariants.nothing_is_left().err());
        Outcome {
            violation,
            steps: self.step,
            jobs: jobs.len(),
            attempts: jobs.iter().map(|job| job.attempt).sum(),
            calm_sweeps: self.most_calm_sweeps,
            reached,
        }
    }

    /// The trace, if it was kept.
    pub fn trace(&self) -> Trace {
        self.world.hub.take_trace()
    }

    fn is_over(&self) -> bool {
        self.tasks.is_empty()
            && self.operations.is_empty()
            && self.late.is_empty()
            && self.world.queues.messages().is_empty()
            && self.world.store.every_job().iter().all(|job| job.is_ended())
    }

    fn is_endless(&self) -> Option<String> {
        if self.calm_sweeps <= SWEEPS_MAX && self.step <= STEPS_MAX {
            return None;
        }
        let open = self.world.store.every_job().into_iter().filter(|job| !job.is_ended());
        let jobs: Vec<String> =
            open.map(|job| format!("{} is {}", job_name(job.job_guid), job.status().as_str())).collect();
        let messages = self.world.queues.messages();
        let messages: Vec<String> = messages.iter().map(|m| format!("{:?}: {}", m.queue, m.body.brief())).collect();
        let (sweeps, steps) = (self.calm_sweeps, self.step);
        Some(format!(
            "it does not end, {sweeps} sweeps in which nothing happens, {steps} steps: {jobs:?}, {messages:?}"
        ))
    }

    fn take_step(&mut self) {
        if let Some(passes) = self.adversary.time_passes(self.step) {
            self.world.hub.advance_to(self.world.hub.now() + passes);
        }
        if self.step.is_multiple_of(64) {
            self.world.jobs.refresh_index();
        }
        self.time_out();
        self.invoke_late();
        self.sweep_on_time();
        self.run_tasks();
        if self.step.is_multiple_of(8) {
            self.hire();
        }
        let roll = self.adversary.rng.u32(0..100);
        let went_on = match roll {
            0..72 => self.decide_call() || self.deliver() || self.operate(),
            72..96 => self.deliver() || self.decide_call() || self.operate(),
            _ => self.operate() || self.deliver() || self.decide_call(),
        };
        if !went_on && !self.hire() {
            self.wait();
        }
        self.run_tasks();
    }

    /// Decides the fate of one of the suspended calls.
    fn decide_call(&mut self) -> bool {
        let count = self.world.hub.suspended();
        if count == 0 {
            return false;
        }
        let call = self.world.hub.suspended_at(self.adversary.rng.usize(0..count));
        let now = self.world.hub.now();
        let Some(invocation) = self.tasks.about_mut(call.task) else { return false };
        if invocation.stalled_until > now {
            return false;
        }
        let function = invocation.function;
        match self.adversary.fate(call.kind, self.step, function) {
            Fate::Call(verdict) => self.world.hub.decide(call.id, verdict),
            Fate::Death => {
                let what = self.world.hub.describe(call.id);
                self.world.hub.tell(Some(call.task), || format!("DIES before {what}"));
                self.kill(call.task);
            }
            Fate::Stall(duration) => {
                let what = self.world.hub.describe(call.id);
                self.world.hub.tell(Some(call.task), || format!("stands still before {what} for {duration:?}"));
                self.tasks.about_mut(call.task).into_iter().for_each(|stalled| stalled.stalled_until = now + duration);
            }
        }
        true
    }

    /// Hands one of the messages that can be received to its function.
    fn deliver(&mut self) -> bool {
        let Some(id) = self.receivable() else { return self.deliver_again() };
        let now = self.world.hub.now();
        let Some(delivery) = self.world.queues.receive(id, now) else {
            self.world.hub.tell(None, || format!("message m{id} becomes a dead letter"));
            return true;
        };
        if self.adversary.drops(self.step) {
            self.world.hub.tell(None, || format!("message m{id} is dropped: {}", delivery.body.brief()));
            return true;
        }
        if delivery.queue == QueueName::Lanes
            && let Some(late) = self.adversary.invokes_late(self.step)
        {
            self.world.hub.tell(None, || format!("message m{id} reaches its function {late:?} late"));
            self.late.push((now + late, delivery));
            return true;
        }
        let may_repeat = !delivery.queue.is_fifo();
        if may_repeat && self.adversary.duplicates(self.step, Function::of_queue(delivery.queue)) {
            self.invoke_for(delivery.clone());
        }
        self.invoke_for(delivery);
        true
    }

    /// Invokes the functions whose pollers were throttled until now.
    fn invoke_late(&mut self) {
        let now = self.world.hub.now();
        while let Some(place) = self.late.iter().position(|(at, _)| *at <= now) {
            let (_, delivery) = self.late.swap_remove(place);
            self.invoke_for(delivery);
        }
    }

    /// One of the messages that are visible and for which a worker is free.
    fn receivable(&mut self) -> Option<u64> {
        let now = self.world.hub.now();
        let room = self.room();
        let mut ready = self.world.queues.receivable(now);
        ready.retain(|(_, queue)| room(*queue));
        if ready.is_empty() { None } else { Some(ready[self.adversary.rng.usize(0..ready.len())].0) }
    }

    /// For which queues a function may be invoked once more: each has workers of its own.
    fn room(&self) -> impl Fn(QueueName) -> bool + use<> {
        let running: Vec<QueueName> = self.tasks.iter().filter_map(|(_, invocation)| invocation.queue()).collect();
        let workers = self.plan.workers;
        move |queue| {
            let most = match Function::of_queue(queue) {
                Function::Process | Function::Lane => workers,
                _ => 2,
            };
            running.iter().filter(|of| **of == queue).count() < most
        }
    }

    /// A copy of a message that is being worked on.
    fn deliver_again(&mut self) -> bool {
        let messages = self.world.queues.messages();
        if messages.is_empty() {
            return false;
        }
        let message = messages[self.adversary.rng.usize(0..messages.len())].clone();
        drop(messages);
        if message.receives == 0 || message.queue.is_fifo() {
            return false;
        }
        if !self.adversary.duplicates(self.step, Function::of_queue(message.queue)) {
            return false;
        }
        let Some(delivery) = self.world.queues.duplicate(message.id) else { return false };
        self.world.hub.tell(None, || format!("message m{} is delivered twice", message.id));
        self.invoke_for(delivery);
        true
    }

    fn operate(&mut self) -> bool {
        let step = self.step;
        let Some(place) = self.operations.iter().position(|planned| planned.step <= step) else { return false };
        let planned = self.operations.swap_remove(place);
        self.begin(planned);
        true
    }

    /// Nothing can continue now: advances the clock to the next time at which something can.
    fn wait(&mut self) {
        let now = self.world.hub.now();
        let is_ready = |task| self.tasks.iter().any(|(number, about)| number == task && about.stalled_until <= now);
        if (0..self.world.hub.suspended()).any(|place| is_ready(self.world.hub.suspended_at(place).task)) {
            // Bad luck of the draw: the next step may take that one.
            return;
        }
        let deadlines = self.tasks.iter().map(|(_, invocation)| invocation.deadline).filter(|at| *at > now).min();
        let stalled = self.tasks.iter().map(|(_, invocation)| invocation.stalled_until).filter(|at| *at > now).min();
        let (timer, visible) = (self.world.hub.next_timer(), self.world.queues.next_visible(now));
        let tasks = self.world.tasks.every_task();
        let due = tasks.iter().map(|task| task.due_at).filter(|at| *at > now).min();
        let late = self.late.iter().map(|(at, _)| *at).min();
        let next = [timer, visible, deadlines, stalled, late, due, Some(self.next_sweep)];
        if let Some(next) = next.into_iter().flatten().min() {
            self.world.hub.advance_to(next);
        }
        // Nothing may happen until a client's step; then the client need not wait that long.
        if let Some(planned) = self.operations.iter_mut().min_by_key(|planned| planned.step) {
            planned.step = planned.step.min(self.step + 20);
        }
    }

    /// Ends the invocations whose time is up. Some continue as zombies.
    fn time_out(&mut self) {
        let now = self.world.hub.now();
        let late: Vec<u64> = self
            .tasks
            .iter()
            .filter(|(_, invocation)| invocation.deadline <= now && !invocation.zombie)
            .map(|(task, _)| task)
            .collect();
        for task in late {
            self.world.invariants.reach("time out");
            if self.adversary.keeps_zombie(self.step) {
                self.world.invariants.reach("zombie");
                self.world.hub.tell(Some(task), || "times out and continues as a ZOMBIE".into());
                let sleeps = self.adversary.zombie_sleeps();
                let Some(invocation) = self.tasks.about_mut(task) else { continue };
                invocation.zombie = true;
                self.world.invariants.is_zombie(task);
                invocation.stalled_until = now + sleeps;
                let chunks = invocation.chunks();
                self.died_at(&chunks);
            } else {
                self.world.hub.tell(Some(task), || "TIMES OUT".into());
                self.kill(task);
            }
        }
    }

    fn sweep_on_time(&mut self) {
        if self.world.hub.now() < self.next_sweep {
            return;
        }
        self.next_sweep = self.world.hub.now() + SWEEP_EVERY;
        let processed = self.world.invariants.processed_rows();
        let is_active = self.adversary.is_active(self.step);
        let progressed = std::mem::replace(&mut self.processed, processed) < processed;
        self.calm_sweeps = if is_active || progressed { 0 } else { self.calm_sweeps + 1 };
        self.most_calm_sweeps = self.most_calm_sweeps.max(self.calm_sweeps);
        if !is_active {
            self.resume_forgotten();
        }
        if self.broken != Broken::NoSweep {
            self.begin(Planned { step: 0, operation: Operation::Sweep, retries: 0 });
        }
    }
}

/// The chunk of a message, if it is about one.
pub(super) const fn chunk_of(body: &Body) -> Option<(JobGuid, ChunkAddress)> {
    match body {
        Body::Chunk(message) => Some((message.job_guid, message.address)),
        _ => None,
    }
}
