//! What may happen: steps, requests, deaths, the end of a worker's time, pause, resume and cancel.

use stateright::{Model, Property};

use super::state::{Budget, Fault, ITEMS, Kind, Request, Run, RunStep, State, Step, WORKERS, Worker};
use super::steps::{self, Next};

/// A rule of the protocol that is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// All rules hold.
    AsBuilt,
    /// A report is taken whoever holds the task.
    ReportIgnoresToken,
    /// A report is taken wherever its items begin.
    ReportIgnoresDone,
    /// A beat or a report moves the checkpoint although another move has come first.
    MovesUnconditionally,
    /// The same of a lease.
    LeasesUnconditionally,
    /// A lease does not look whether all items are done.
    LeasesWhatIsDone,
    /// A worker begins without a beat.
    BeginsBeforeItsBeat,
    /// The job is not read again after the first beat.
    FirstBeatLooksOnce,
    /// A report removes the task, and then commits.
    RemovesBeforeItCommits,
    /// A task that no worker may process is removed, and then its message is sent.
    RemovesBeforeItSends,
    /// The chunk of a stopped job is committed although a worker is at it.
    SkipsWhatIsHeld,
}

/// A chunk of two items, two workers, and how many events may happen to them.
#[derive(Clone, Debug)]
pub struct Tasks {
    pub rule: Rule,
    pub budget: Budget,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A message is delivered; with `again`, it stays in its queue too.
    Deliver {
        old: bool,
        again: bool,
    },
    Run(usize, RunStep),
    /// The invocation dies after this step; its message returns.
    CrashRun(usize, RunStep),
    /// The task is looked at: by this worker's lease, or by any, or the sweep, if no worker may process it.
    Look(Option<u8>),
    Request(usize, Kind, Step),
    /// The invocation dies after this step.
    CrashRequest(usize, Kind, Step),
    Send(u8, Kind),
    /// A worker no longer waits for this answer.
    Repeat(usize, Kind),
    /// A worker processes its next item.
    Process(u8),
    /// A worker stops: by its clock its time is over.
    TimeIsOver(u8),
    Die(u8),
    /// The time of a note is over.
    NoteIsOver,
    Pause,
    Resume,
    Cancel,
    /// The sweep closes the tally of the stopped job, which has no task.
    Close,
}

/// One worker processes an item at a time.
pub const ONE_AT_WORK: &str = "one worker is at the items";
pub const ONLY_PROCESSED: &str = "what counts as done was processed";
pub const ONLY_HOLDER: &str = "an outcome is taken from the holder alone";
pub const NOTHING_UNDONE: &str = "no item that is done becomes open again";
/// Of a job that was not paused before it was stopped: its messages are dropped then.
pub const ACCEPTED_COUNTS: &str = "what a holder reports in its time counts";
pub const EXACT: &str = "if nobody stops the job, all items are done";
pub const NO_TASK_LOST: &str = "an open chunk has a task, a message, or somebody who works on it";
pub const NO_EMPTY_LEASE: &str = "each lease has items";
pub const RIGHT_REPORTS: &str = "no right report is refused";

impl Model for Tasks {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.budget)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let budget = &state.budget;
        for (place, request) in state.requests.iter().enumerate() {
            actions.push(Action::Request(place, request.kind, request.step));
            actions.extend((budget.crashes > 0).then_some(Action::CrashRequest(place, request.kind, request.step)));
            let may_repeat = budget.repeats > 0 && request.asker.is_some();
            actions.extend(may_repeat.then_some(Action::Repeat(place, request.kind)));
        }
        for (place, run) in state.runs.iter().enumerate() {
            actions.push(Action::Run(place, run.step));
            actions.extend((budget.crashes > 0).then_some(Action::CrashRun(place, run.step)));
        }
        // What begins after the commit sees it.
        if state.committed.is_some() {
            return;
        }
        for (old, count) in [(false, state.messages), (true, state.old_messages)] {
            if count > 0 && state.runs.len() < 2 {
                actions.push(Action::Deliver { old, again: false });
                actions.extend((budget.duplicates > 0).then_some(Action::Deliver { old, again: true }));
            }
        }
        self.looks(state, actions);
        (0..WORKERS).for_each(|worker| actions_of(state, worker, actions));
        if state.checkpoint.is_held() && !self.is_worked_on(state) {
            actions.push(Action::NoteIsOver);
        }
        let is_stuck = state.stopped && state.is_quiet() && state.task.is_none();
        actions.extend(is_stuck.then_some(Action::Close));
        actions.extend((budget.pauses > 0 && !state.is_halted()).then_some(Action::Pause));
        actions.extend(state.paused.then_some(Action::Resume));
        actions.extend((budget.cancels > 0 && !state.stopped).then_some(Action::Cancel));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Deliver { old, again } => {
                if again {
                    state.budget.duplicates -= 1;
                } else {
                    *(if old { &mut state.old_messages } else { &mut state.messages }) -= 1;
                }
                state.runs.extend(steps::begin(&state, old));
            }
            Action::Run(place, _) => {
                let run = state.runs.remove(place);
                let next = steps::run(self.rule, &mut state, run);
                state.runs.extend(next.map(|step| Run { step, ..run }));
            }
            Action::CrashRun(place, _) => {
                state.budget.crashes -= 1;
                let run = state.runs.remove(place);
                steps::run(self.rule, &mut state, run);
                state.send(run.old);
            }
            Action::Look(asker) => {
                let request = steps::look(self.rule, &state)?;
                state.requests.push(Request { asker, ..request });
                if let Some(worker) = asker {
                    state.workers[usize::from(worker)] = Worker::Asking;
                }
            }
            Action::Request(place, ..) => {
                let mut request = state.requests.remove(place);
                match steps::take(self.rule, &mut state, &mut request) {
                    Next::Then(step) => state.requests.push(Request { step, ..request }),
                    Next::Done(answer) => steps::deliver(self.rule, &mut state, &request, answer),
                }
            }
            Action::CrashRequest(place, ..) => {
                state.budget.crashes -= 1;
                let mut request = state.requests.remove(place);
                steps::take(self.rule, &mut state, &mut request);
                unanswered(&mut state, request.asker);
            }
            Action::Repeat(place, _) => {
                state.budget.repeats -= 1;
                let asker = state.requests[place].asker.take();
                unanswered(&mut state, asker);
            }
            Action::Send(worker, kind) => self.send(&mut state, worker, kind),
            Action::Process(worker) => {
                let at = state.at_mut(worker)?;
                at.done += 1;
                let done = at.done;
                state.processed = state.processed.max(done);
            }
            Action::TimeIsOver(worker) => state.at_mut(worker)?.may_work = false,
            Action::Die(worker) => {
                state.budget.deaths -= 1;
                state.leave(worker);
            }
            Action::NoteIsOver => state.end_note(),
            Action::Pause => {
                state.budget.pauses -= 1;
                state.pause();
            }
            Action::Resume => {
                state.paused = false;
                state.send(false);
            }
            Action::Cancel => {
                state.budget.cancels -= 1;
                (state.stopped, state.paused) = (true, false);
            }
            Action::Close => state.commit(0),
        }
        state.sort();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(ONE_AT_WORK, |_, state: &State| state.at_items().count() <= 1),
            Property::always(ONLY_PROCESSED, |_, state: &State| {
                state.checkpoint.done.max(state.committed.unwrap_or(0)) <= state.processed
            }),
            Property::always(ONLY_HOLDER, |_, state: &State| state.fault != Some(Fault::ForeignOutcome)),
            Property::always(NOTHING_UNDONE, |_, state: &State| state.fault != Some(Fault::OutcomeUndone)),
            Property::always(NO_EMPTY_LEASE, |_, state: &State| state.fault != Some(Fault::EmptyLease)),
            Property::always(RIGHT_REPORTS, |_, state: &State| state.fault != Some(Fault::RightReportRefused)),
            Property::always(ACCEPTED_COUNTS, |_, state: &State| {
                state.was_paused || state.committed.is_none_or(|done| done >= state.accepted)
            }),
            Property::always(EXACT, |_, state: &State| {
                state.stopped || state.committed.is_none_or(|done| done == ITEMS)
            }),
            Property::always(NO_TASK_LOST, |_, state: &State| {
                let has_ended = state.committed.is_some() || state.is_halted();
                has_ended || !state.is_quiet() || state.task.is_some()
            }),
            Property::sometimes("a job completes", |_, state: &State| !state.stopped && state.committed == Some(ITEMS)),
        ];
        if self.budget.cancels > 0 {
            properties.push(Property::sometimes("a job is stopped halfway", |_, state: &State| {
                state.stopped && state.committed == Some(1) && state.workers == [Worker::Idle; WORKERS as usize]
            }));
        }
        properties
    }
}

impl Tasks {
    fn looks(&self, state: &State, actions: &mut Vec<Action>) {
        let Some(request) = steps::look(self.rule, state) else { return };
        let is_lease = request.step == Step::Move;
        if is_lease && state.budget.leases > 0 {
            let idle = (0..WORKERS).find(|worker| state.workers[usize::from(*worker)] == Worker::Idle);
            actions.extend(idle.map(|worker| Action::Look(Some(worker))));
        }
        // A second one at once only sends a second message.
        let mut looks = state.requests.iter().filter(|request| request.kind == Kind::Lease && request.asker.is_none());
        if !is_lease && looks.next().is_none() {
            actions.push(Action::Look(None));
        }
    }

    /// A worker sends a request, which begins with its reads.
    fn send(&self, state: &mut State, worker: u8, kind: Kind) {
        let Some(at) = state.at_mut(worker) else { return };
        let is_again = at.pending == Some(kind);
        let is_further_beat = kind == Kind::Beat && at.begun && !is_again;
        if let Kind::Release { .. } = kind {
            at.may_work = false;
        }
        (at.pending, at.waits) = (Some(kind), true);
        let token = at.token;
        state.budget.beats -= u8::from(is_further_beat);
        state.budget.deaths -= u8::from(kind == Kind::Release { failed: true } && !is_again);
        let request = Request { asker: Some(worker), ..Request::new(kind, token, Step::Move, state.checkpoint) };
        match steps::read(self.rule, state, token, kind) {
            Next::Then(step) => state.requests.push(Request { step, ..request }),
            Next::Done(answer) => steps::deliver(self.rule, state, &request, answer),
        }
    }

    /// True if the worker that holds the task may be at an item: it stops before its note is over.
    fn is_worked_on(&self, state: &State) -> bool {
        let begins_early =
            self.rule == Rule::BeginsBeforeItsBeat && state.checkpoint.note.is_some_and(|note| !note.confirmed);
        !begins_early && state.at_items().any(|at| at.token == state.checkpoint.by)
    }
}

/// The actions of a worker that has a task.
fn actions_of(state: &State, worker: u8, actions: &mut Vec<Action>) {
    let Worker::At(at) = state.workers[usize::from(worker)] else { return };
    if state.budget.deaths > 0 {
        actions.push(Action::Die(worker));
    }
    if at.begun && at.may_work {
        actions.push(Action::TimeIsOver(worker));
        actions.extend((at.done < at.to).then_some(Action::Process(worker)));
    }
    let mut send = |kind| actions.push(Action::Send(worker, kind));
    match at.pending {
        _ if at.waits => {}
        // It sends what has no answer again, as it was.
        Some(kind) => send(kind),
        None if !at.begun => send(Kind::Beat),
        None => {
            if at.may_work && state.budget.beats > 0 {
                send(Kind::Beat);
            }
            match at.done > at.from {
                true => send(Kind::Report { from: at.from, to: at.done }),
                false if !at.may_work => send(Kind::Release { failed: false }),
                // It counts like a death.
                false if state.budget.deaths > 0 => send(Kind::Release { failed: true }),
                false => {}
            }
        }
    }
}

/// A worker has no answer.
fn unanswered(state: &mut State, asker: Option<u8>) {
    let Some(worker) = asker else { return };
    match state.at_mut(worker) {
        Some(at) => at.waits = false,
        None => state.leave(worker),
    }
}
