//! A run: the adversary takes one decision after the other until everything has come to its end, or something that must
//! hold does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::ChunkAddress;

use super::adversary::{Adversary, Fate};
use super::broken::Broken;
use super::functions::{Function, Invocation, Reply, Work};
use super::invariants::Reached;
use super::plan::{Operation, Plan, Planned, SWEEP_EVERY};
use super::queues::{Body, Delivery};
use super::tasks::{Ended, Tasks};
use super::trace::{Trace, job_name};
use super::world::World;

/// How many sweeps it may take from the last fault until everything has come to its end.
const SWEEPS_MAX: u64 = 400;

/// How many steps a run may take; a run that takes more does not end.
const STEPS_MAX: u64 = 400_000;

/// A run of a seed.
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
    /// Sweeps since the last fault.
    calm_sweeps: u64,
    pub(super) corrected_files: u128,
    /// The job that each idempotency key created.
    created: BTreeMap<String, JobGuid>,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What did not hold, if anything.
    pub violation: Option<String>,
    /// Steps taken.
    pub steps: u64,
    /// Jobs there were.
    pub jobs: usize,
    /// Attempts they had.
    pub attempts: u32,
    /// Sweeps it took after the last fault.
    pub calm_sweeps: u64,
    /// Where the run got.
    pub reached: Reached,
}

/// When every run begins.
fn beginning() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// What is done that there is no need of where nothing goes wrong, if anything.
fn needless(reached: &Reached) -> Option<String> {
    let needless = ["chunk sent again", "commit lost", "time out", "Sweep: recovered", "Process: Repeated"];
    let found = reached.keys().find(|place| needless.contains(&place.as_str()) || place.starts_with("dead letter"))?;
    Some(format!("nothing went wrong, and yet: {found}"))
}

impl Run {
    /// The run of this seed.
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
            calm_sweeps: 0,
            corrected_files: 0,
            created: BTreeMap::new(),
            world,
            plan,
        };
        run.upload_files();
        run
    }

    /// Runs to the end.
    pub fn run(&mut self) -> Outcome {
        let mut violation = None;
        while violation.is_none() && !self.is_over() {
            self.step += 1;
            self.take_step();
            violation = self.world.hub.violation().or_else(|| self.goes_on_for_ever());
        }
        let violation = violation.or_else(|| self.world.invariants.at_the_end().err());
        let reached = self.world.invariants.take_reached();
        let violation = violation.or_else(|| self.plan.is_without_trouble().then(|| needless(&reached)).flatten());
        let jobs = self.world.store.every_job();
        Outcome {
            violation,
            steps: self.step,
            jobs: jobs.len(),
            attempts: jobs.iter().map(|job| job.attempt).sum(),
            calm_sweeps: self.calm_sweeps,
            reached,
        }
    }

    /// What happened, if it was kept.
    pub fn trace(&self) -> Trace {
        self.world.hub.take_trace()
    }

    fn is_over(&self) -> bool {
        self.tasks.is_empty()
            && self.operations.is_empty()
            && self.world.queues.messages().is_empty()
            && self.world.store.every_job().iter().all(|job| job.status.is_terminal())
    }

    fn goes_on_for_ever(&self) -> Option<String> {
        if self.calm_sweeps <= SWEEPS_MAX && self.step <= STEPS_MAX {
            return None;
        }
        let open = self.world.store.every_job().into_iter().filter(|job| !job.status.is_terminal());
        let jobs: Vec<String> =
            open.map(|job| format!("{} is {}", job_name(job.job_guid), job.status.as_str())).collect();
        let messages = self.world.queues.messages();
        let messages: Vec<String> = messages.iter().map(|m| format!("{:?}: {}", m.queue, m.body.brief())).collect();
        let (sweeps, steps) = (self.calm_sweeps, self.step);
        Some(format!("it does not end, {sweeps} sweeps after the last fault, {steps} steps: {jobs:?}, {messages:?}"))
    }

    fn take_step(&mut self) {
        if let Some(passes) = self.adversary.time_passes(self.step) {
            self.world.hub.advance_to(self.world.hub.now() + passes);
        }
        if self.step.is_multiple_of(64) {
            self.world.jobs.refresh_index();
        }
        self.time_out();
        self.sweep_on_time();
        self.run_tasks();
        let roll = self.adversary.rng.u32(0..100);
        let went_on = match roll {
            0..72 => self.decide_call() || self.deliver() || self.operate(),
            72..96 => self.deliver() || self.decide_call() || self.operate(),
            _ => self.operate() || self.deliver() || self.decide_call(),
        };
        if !went_on {
            self.wait();
        }
        self.run_tasks();
    }

    /// Lets one of the suspended calls go on, or not.
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
            self.world.hub.tell(None, || format!("message m{id} reaches nobody: {}", delivery.body.brief()));
            return true;
        }
        if self.adversary.duplicates(self.step, Function::of_queue(delivery.queue)) {
            self.invoke_for(delivery.clone());
        }
        self.invoke_for(delivery);
        true
    }

    /// One of the messages that are visible and whose function has room.
    fn receivable(&mut self) -> Option<u64> {
        let now = self.world.hub.now();
        let room = self.room();
        let messages = self.world.queues.messages();
        let ready = || messages.iter().filter(|m| m.visible_at <= now && room(Function::of_queue(m.queue)));
        let count = ready().count();
        let place = if count == 0 { return None } else { self.adversary.rng.usize(0..count) };
        ready().nth(place).map(|message| message.id)
    }

    /// Which functions may be invoked once more.
    fn room(&self) -> impl Fn(Function) -> bool + use<> {
        let mut running = [0_usize; Function::ALL.len()];
        self.tasks.iter().for_each(|(_, invocation)| running[invocation.function as usize] += 1);
        let workers = self.plan.workers;
        move |function| {
            let most = match function {
                Function::Process => workers,
                _ => 2,
            };
            running[function as usize] < most
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
        if message.receives == 0 || !self.adversary.duplicates(self.step, Function::of_queue(message.queue)) {
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

    /// Nothing can go on now: the time moves to where something can.
    fn wait(&mut self) {
        let now = self.world.hub.now();
        let is_ready = |task| self.tasks.iter().any(|(number, about)| number == task && about.stalled_until <= now);
        if (0..self.world.hub.suspended()).any(|place| is_ready(self.world.hub.suspended_at(place).task)) {
            // Only unlucky: the next step takes that one.
            return;
        }
        let deadlines = self.tasks.iter().map(|(_, invocation)| invocation.deadline).filter(|at| *at > now).min();
        let stalled = self.tasks.iter().map(|(_, invocation)| invocation.stalled_until).filter(|at| *at > now).min();
        let (timer, visible) = (self.world.hub.next_timer(), self.world.queues.next_visible(now));
        let next = [timer, visible, deadlines, stalled, Some(self.next_sweep)];
        if let Some(next) = next.into_iter().flatten().min() {
            self.world.hub.advance_to(next);
        }
        // A client that waits for a step need not wait for it where nothing happens before.
        if let Some(planned) = self.operations.iter_mut().min_by_key(|planned| planned.step) {
            planned.step = planned.step.min(self.step + 20);
        }
    }

    /// Ends the invocations that have lasted too long, but for those that go on as zombies.
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
                self.world.hub.tell(Some(task), || "times out and goes on as a ZOMBIE".into());
                let sleeps = self.adversary.zombie_sleeps();
                let Some(invocation) = self.tasks.about_mut(task) else { continue };
                invocation.zombie = true;
                self.world.invariants.isolates(task, None);
                invocation.stalled_until = now + sleeps;
                if let Some((job, chunk)) = invocation.chunk() {
                    self.world.invariants.died_at(job, chunk);
                }
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
        self.calm_sweeps = if self.adversary.is_at_it(self.step) { 0 } else { self.calm_sweeps + 1 };
        if self.broken != Broken::NoSweep {
            self.begin(Planned { step: 0, operation: Operation::Sweep, retries: 0 });
        }
    }

    fn kill(&mut self, task: u64) {
        if let Some(invocation) = self.tasks.kill(task) {
            self.world.invariants.isolates(task, None);
            self.died(invocation);
        }
    }

    fn run_tasks(&mut self) {
        for (task, invocation, ended) in self.tasks.run() {
            self.world.invariants.isolates(task, None);
            match ended {
                Ended::Died => self.died(invocation),
                Ended::Returned(reply) => self.returned(task, invocation, reply),
            }
        }
    }

    /// A process is gone, without a word to anybody.
    fn died(&mut self, invocation: Invocation) {
        self.died_at(invocation.chunk().filter(|_| !invocation.zombie));
        match invocation.work {
            Work::Message(delivery) if !invocation.zombie => self.failed(&delivery),
            Work::Operation(planned) => self.try_again(planned),
            Work::Message(_) => {}
        }
    }

    fn died_at(&self, chunk: Option<(JobGuid, ChunkAddress)>) {
        if let Some((job, chunk)) = chunk {
            self.world.invariants.died_at(job, chunk);
        }
    }

    fn returned(&mut self, task: u64, invocation: Invocation, reply: Reply) {
        self.world.hub.tell(Some(task), || format!("{:?} returns {reply}", invocation.function));
        self.world.invariants.reach(reply.place(invocation.function));
        let failures = self.world.hub.take_failures(task);
        if let (Reply::Failed(why), false) = (&reply, invocation.zombie) {
            // One failed call is an outage, not a death: it must not be held against the item at hand. With two the note
            // that says which item that is may have been left behind.
            if failures > 1 || why.contains("took too long") {
                self.died_at(invocation.chunk());
            }
        }
        self.idle.extend(invocation.process);
        match (invocation.work, reply) {
            (Work::Message(_), _) if invocation.zombie => {}
            (Work::Message(delivery), Reply::Done(_)) => {
                if invocation.function == Function::DeadLetter {
                    self.world.hub.check(self.world.invariants.dead_letter_settled(&delivery));
                }
                if !self.adversary.loses_acknowledgement(self.step) {
                    self.world.queues.acknowledge(&delivery);
                }
            }
            (Work::Message(delivery), _) => self.failed(&delivery),
            (Work::Operation(planned), Reply::Failed(_) | Reply::Full(_)) => self.try_again(planned),
            (Work::Operation(_), Reply::Created(Some(key), job)) => {
                let first = *self.created.entry(key.clone()).or_insert(job);
                let (first_name, name) = (job_name(first), job_name(job));
                let same = if first == job { Ok(()) } else { Err(format!("{key} created {first_name} and {name}")) };
                self.world.hub.check(same);
            }
            (Work::Operation(_), _) => {}
        }
    }

    /// The message comes back, now or later.
    fn failed(&mut self, delivery: &Delivery) {
        if let Some(after) = self.adversary.gives_back_after() {
            self.world.queues.give_back(delivery, self.world.hub.now() + after);
        }
    }

    fn try_again(&mut self, planned: Planned) {
        if planned.retries > 0 {
            let step = self.step + self.adversary.rng.u64(1..200);
            self.operations.push(Planned { step, retries: planned.retries - 1, ..planned });
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
