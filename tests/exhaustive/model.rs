//! The explored state machine: every step of every invocation, and every event that may happen between steps.

use stateright::{Model, Property};

use crate::programs::{Programs, Rules};
use crate::properties;
use crate::rows::{Lease, Rows, Status};
use crate::tasks::{After, Budget, Hold, Message, Queues, State, Step, Task, Who, Work};

/// A job, and how many events may happen to it.
#[derive(Clone, Debug)]
pub struct Protocol {
    pub programs: Programs,
    pub budget: Budget,
}

/// A transition of the state machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// An invocation takes its next step.
    Take(Who, Step),
    /// The step takes effect but its reply is lost, so the invocation repeats it.
    LoseReply(Who, Step),
    /// A split's time is up: it hands over instead of continuing.
    TimeIsUp(Who),
    /// A message is delivered.
    Deliver(Message),
    /// The message of a chunk is delivered together with that of another chunk of its tally.
    DeliverBoth(Message, u8),
    /// This worker's message is delivered to the other worker too.
    DeliverTwice(Who),
    /// The second of this worker's two messages is delivered to the other worker too.
    DeliverSecondTwice(Who),
    /// The acknowledgement of the message is lost, so the message stays in its queue.
    ForgetAcknowledgement(Who),
    /// The invocation dies; its message returns to the queue.
    Crash(Who, Step),
    /// A lease expires that its holder did not release.
    LeaseRunsOut,
    /// *`stop` on `job`*, by `cancel-job`.
    Cancel,
    /// *`paused` on `job`*, by `cancel-job`.
    Hold,
    /// The end of the pause, by `cancel-job`; its message follows.
    Resume,
    /// *`maxConcurrency` on `job`*, by `cancel-job`; if it is a restart, its message follows.
    ChangeWidth,
    /// The transaction of `sweep` that gives the shared slots of a paused job back.
    ReturnSlots,
    /// The transaction of `redrive-job`.
    Redrive,
    /// `sweep` finds the job due and claims it.
    Sweep,
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state =
            State { rows: Rows::created(), queues: Queues::default(), tasks: Default::default(), budget: self.budget };
        send_split(&mut state);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let (budget, job) = (&state.budget, &state.rows.job);
        for who in Who::ALL {
            self.actions_of(state, who, actions);
        }
        if state.idle_worker().is_some() {
            actions.extend(state.queues.waiting().map(Action::Deliver));
            actions.extend(self.pairs(state).map(|(message, with)| Action::DeliverBoth(message, with)));
        }
        if job.lease == Lease::Orphaned || (job.lease != Lease::Free && budget.zombies > 0) {
            actions.push(Action::LeaseRunsOut);
        }
        if budget.cancels > 0 && !job.stop && !job.status.is_terminal() {
            actions.push(Action::Cancel);
        }
        if budget.holds > 0 && !job.stop && matches!(job.status, Status::Waiting | Status::Running) {
            actions.push(Action::Hold);
        }
        if job.status == Status::Paused && state.task(Who::Caller).is_none() {
            actions.push(Action::Resume);
        }
        let may_change = budget.widths > 0 && !job.stop && !job.status.is_terminal();
        if may_change && state.task(Who::Caller).is_none() {
            actions.push(Action::ChangeWidth);
        }
        if job.status == Status::Paused && !job.returned {
            actions.push(Action::ReturnSlots);
        }
        if budget.redrives > 0 && job.status.is_terminal() && job.counts.failed == 1 {
            actions.push(Action::Redrive);
        }
        if self.sweeps_left(state) > 0 && !job.status.is_terminal() && state.task(Who::Sweeper).is_none() {
            actions.push(Action::Sweep);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        let budget = &mut next.budget;
        match action {
            Action::Take(who, _) => self.take(&mut next, who),
            Action::LoseReply(who, _) => {
                budget.lost_replies -= 1;
                let task = next.task(who).copied()?;
                self.programs.take(&mut next, who, task);
                if next.rows == state.rows && next.queues == state.queues {
                    // The step changed nothing, so the lost reply makes no difference.
                    return None;
                }
                *next.task_mut(who) = Some(Task { repeats: true, ..task });
            }
            Action::TimeIsUp(who) => {
                budget.hand_overs -= 1;
                next.task_mut(who).as_mut()?.step = Step::HandOver;
            }
            Action::Deliver(message) => {
                let who = next.idle_worker()?;
                next.queues.take(message);
                *next.task_mut(who) = Some(Task::begin(message, Hold::Only));
            }
            Action::DeliverBoth(message, with) => {
                let who = next.idle_worker()?;
                next.queues.take(message);
                next.queues.take(Message { work: Work::Chunk(with), ..message });
                *next.task_mut(who) = Some(Task { with: Some(with), ..Task::begin(message, Hold::Only) });
            }
            Action::DeliverTwice(who) => {
                budget.duplicates -= 1;
                let task = next.task_mut(who).as_mut()?;
                task.hold = Hold::Shared;
                let message = again(task.message);
                let other = next.idle_worker()?;
                *next.task_mut(other) = Some(Task::begin(message, Hold::Shared));
            }
            Action::DeliverSecondTwice(who) => {
                budget.duplicates -= 1;
                let message = again(next.task(who)?.second()?);
                let other = next.idle_worker()?;
                // If the copy's receiver dies, the message itself is still there.
                *next.task_mut(other) = Some(Task::begin(message, Hold::None));
            }
            Action::ForgetAcknowledgement(who) => {
                budget.duplicates -= 1;
                let task = *next.task(who)?;
                next.queues.send(again(task.message));
                next.queues.send_all(task.second().map(again));
                next.leave(who);
            }
            Action::Crash(who, _) => {
                match budget.crashes {
                    0 => budget.chunk_crashes -= 1,
                    _ => budget.crashes -= 1,
                }
                crash(&mut next, who);
            }
            Action::LeaseRunsOut => {
                if next.rows.job.lease != Lease::Orphaned {
                    budget.zombies -= 1;
                }
                next.rows.job.lease = Lease::Free;
            }
            Action::Cancel => {
                budget.cancels -= 1;
                next.rows.stop();
            }
            Action::Hold => {
                budget.holds -= 1;
                next.pause();
            }
            Action::Resume => {
                next.rows.resume();
                if self.programs.rules == Rules::ForgetOnResume {
                    (next.rows.job.held, next.rows.job.resend_from) = (false, None);
                }
                send_split(&mut next);
            }
            Action::ChangeWidth => {
                budget.widths -= 1;
                if next.change_width() {
                    send_split(&mut next);
                }
            }
            Action::ReturnSlots => next.rows.return_shared(),
            Action::Redrive => {
                budget.redrives -= 1;
                next.rows.redrive();
                send_split(&mut next);
            }
            Action::Sweep => {
                match (state.is_quiet(), is_always_due(state)) {
                    (true, false) => budget.sweeps -= 1,
                    (true, true) => {}
                    (false, _) => budget.early_sweeps -= 1,
                }
                // What it sends has the epoch as it reads it here: it is dropped once the job is resumed.
                let (attempt, old) = (next.rows.job.attempt, next.rows.job.status == Status::Paused);
                let message = Message { attempt, work: Work::Split, again: false, old };
                let step = self.programs.begin_sweep(&next)?;
                *next.task_mut(Who::Sweeper) = Some(Task { step, ..Task::begin(message, Hold::None) });
            }
        }
        next.sort_workers();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self)
    }
}

impl Protocol {
    /// Number of times that the sweep may still look at the job in this state. While the job still moves, only early
    /// sweeps may. A paused or stopped job that nothing moves is looked at any number of times.
    pub fn sweeps_left(&self, state: &State) -> u8 {
        match (self.programs.rules, state.is_quiet()) {
            (Rules::NoSweep, _) => 0,
            (_, true) if is_always_due(state) => 1,
            (_, true) => state.budget.sweeps,
            (_, false) => state.budget.early_sweeps,
        }
    }

    /// The fresh messages of chunks that an invocation may receive together: each with the number of the other chunk.
    fn pairs(&self, state: &State) -> impl Iterator<Item = (Message, u8)> {
        let fresh: Vec<(Message, u8)> = (state.queues.waiting())
            .filter(|message| self.programs.joint && !message.again && !message.old)
            .filter_map(|message| match message.work {
                Work::Chunk(chunk) => Some((message, chunk)),
                Work::Split | Work::Complete => None,
            })
            .collect();
        let tally = |chunk| self.programs.address(chunk).0;
        let pairs: Vec<(Message, u8)> = fresh
            .iter()
            .flat_map(|first| fresh.iter().map(move |second| (first, second)))
            .filter(|((message, chunk), (other, with))| {
                message.attempt == other.attempt && chunk < with && tally(*chunk) == tally(*with)
            })
            .map(|((message, _), (_, with))| (*message, *with))
            .collect();
        pairs.into_iter()
    }

    fn actions_of(&self, state: &State, who: Who, actions: &mut Vec<Action>) {
        let (Some(task), budget) = (state.task(who), &state.budget) else { return };
        let step = task.step;
        if !waits_for_lease(state, who, task) && !self.programs.waits_for_runs(state, step) {
            actions.push(Action::Take(who, step));
            if budget.lost_replies > 0 && !task.repeats && !matches!(step, Step::ReadJob | Step::Acknowledge) {
                actions.push(Action::LoseReply(who, step));
            }
        }
        if budget.hand_overs > 0 && is_at_tally_border(who, step) {
            actions.push(Action::TimeIsUp(who));
        }
        let is_chunk = matches!(task.message.work, Work::Chunk(_));
        if budget.crashes > 0 || (budget.chunk_crashes > 0 && is_chunk) {
            actions.push(Action::Crash(who, step));
        }
        if budget.duplicates > 0 && task.hold == Hold::Only {
            if state.idle_worker().is_some() {
                actions.push(Action::DeliverTwice(who));
                actions.extend(task.with.map(|_| Action::DeliverSecondTwice(who)));
            }
            if step == Step::Acknowledge {
                actions.push(Action::ForgetAcknowledgement(who));
            }
        }
    }

    fn take(&self, state: &mut State, who: Who) {
        let Some(task) = state.task(who).copied() else { return };
        if let Some(step) = self.programs.take(state, who, task) {
            // Messages are from before a pause if the row that their sender has read or written last is.
            let is_split = task.message.work == Work::Split;
            let reads = matches!(task.step, Step::ReadJob | Step::TakeLease | Step::CountTally(_));
            let old = task.message.old && !(is_split && reads);
            let message = Message { old, ..task.message };
            *state.task_mut(who) = Some(Task { message, step, repeats: false, ..task });
            return;
        }
        if let Some(twin) = state.twin(who) {
            twin.hold = Hold::None;
        }
        state.leave(who);
    }
}

/// True if the sweep looks at the job without any fault: it is paused, or a stop has made it due.
fn is_always_due(state: &State) -> bool {
    state.rows.job.status == Status::Paused || (state.rows.job.stop && !state.rows.job.status.is_terminal())
}

fn send_split(state: &mut State) {
    let message = Message { attempt: state.rows.job.attempt, work: Work::Split, again: false, old: false };
    let step = Step::SendSplit(After::Done);
    *state.task_mut(Who::Caller) = Some(Task { step, ..Task::begin(message, Hold::None) });
}

/// This message, marked as delivered before. Only the receiver of a chunk uses the mark.
const fn again(message: Message) -> Message {
    Message { again: matches!(message.work, Work::Chunk(_)), ..message }
}

fn crash(state: &mut State, who: Who) {
    let Some(task) = state.task(who).copied() else { return };
    if let Some(twin) = state.twin(who) {
        twin.hold = Hold::Only;
    }
    if task.hold == Hold::Only {
        state.queues.send(again(task.message));
    }
    state.queues.send_all(task.second().map(again));
    state.leave(who);
}

/// A completion waits while another run holds the lease: that run may be about to end the job, or dead.
fn waits_for_lease(state: &State, who: Who, task: &Task) -> bool {
    let held = ![Lease::Free, Lease::Held(who)].contains(&state.rows.job.lease);
    task.step == Step::TakeLeaseToEnd && held && !state.rows.is_past(task.message.attempt)
}

const fn is_at_tally_border(who: Who, step: Step) -> bool {
    matches!((who, step), (Who::Worker(_), Step::PutTally(1..) | Step::FinishSplit))
}

pub const fn has_ended(state: &State) -> bool {
    matches!(state.rows.job.status, Status::Completed | Status::Cancelled)
}
