//! The steps of `work-task` and of `process-items`, and what the workers make of answers.

use super::model::Rule;
use super::state::{Answer, AtTask, Checkpoint, Fault, ITEMS, Kind, Note, Request, Run, RunStep, State, Step, Worker};

/// The end of a step.
pub enum Next {
    Then(Step),
    Done(Answer),
}

use Next::{Done, Then};

/// The look of a lease at the task: its request after the reads, if they lead to a write.
pub fn look(rule: Rule, state: &State) -> Option<Request> {
    let (task, seen) = (state.task?, state.checkpoint);
    let is_done = seen.done == ITEMS && rule != Rule::LeasesWhatIsDone;
    let step = match () {
        () if seen.is_held() => return None,
        () if state.is_halted() || task || is_done => give_back(rule),
        () => Step::Move,
    };
    Some(Request { old: task, task_fresh: true, ..Request::new(Kind::Lease, 0, step, seen) })
}

const fn give_back(rule: Rule) -> Step {
    match rule {
        Rule::RemovesBeforeItSends => Step::Remove,
        _ => Step::SendBack,
    }
}

/// The reads of a beat, a report or a release.
pub fn read(rule: Rule, state: &State, token: u8, kind: Kind) -> Next {
    let seen = state.checkpoint;
    let ignores_token = rule == Rule::ReportIgnoresToken && matches!(kind, Kind::Report { .. });
    let note = if ignores_token { seen.note } else { seen.held_by(token) };
    match (kind, note) {
        _ if seen.by != token && note.is_none() => Done(Answer::Gone),
        (Kind::Report { .. }, None) if seen.done == ITEMS && state.task.is_some() => Then(concluded(rule)),
        (_, None) => Done(Answer::Finished),
        (Kind::Beat, _) if state.is_halted() => Done(Answer::Stop),
        (Kind::Report { .. }, _) if state.task.is_none() => Done(Answer::Gone),
        (Kind::Report { .. }, Some(note)) if !note.confirmed => Done(Answer::Refused),
        (Kind::Report { .. }, Some(_)) if rule == Rule::ReportIgnoresDone => Then(Step::Move),
        (Kind::Report { from, to }, Some(note)) if from == seen.done && to <= from + note.items => Then(Step::Move),
        // Its reply was lost.
        (Kind::Report { to, .. }, _) if to == seen.done => Done(order(state)),
        (Kind::Report { .. }, _) => Done(Answer::Refused),
        _ => Then(Step::Move),
    }
}

const fn concluded(rule: Rule) -> Step {
    match rule {
        Rule::RemovesBeforeItCommits => Step::Remove,
        _ => Step::Commit,
    }
}

const fn order(state: &State) -> Answer {
    if state.is_halted() { Answer::Stop } else { Answer::Continue }
}

pub fn take(rule: Rule, state: &mut State, request: &mut Request) -> Next {
    match request.step {
        Step::Move => move_checkpoint(rule, state, request),
        Step::LookAgain if request.kind == Kind::Beat => Done(order(state)),
        Step::LookAgain => match state.is_halted() || request.old || state.committed.is_some() {
            true => Then(give_back(rule)),
            false => {
                state.set_task(state.task);
                let from = request.seen.done;
                Done(Answer::Lent { from, to: from + request.seen.next().0 })
            }
        },
        Step::SendBack => {
            state.send(request.old);
            if rule == Rule::RemovesBeforeItSends { Done(Answer::Nothing) } else { Then(Step::Remove) }
        }
        Step::Remove => {
            if request.task_fresh || request.kind != Kind::Lease {
                state.set_task(None);
            }
            match (rule, request.kind) {
                (Rule::RemovesBeforeItSends, Kind::Lease) => Then(Step::SendBack),
                (_, Kind::Lease) => Done(Answer::Nothing),
                (Rule::RemovesBeforeItCommits, _) => Then(Step::Commit),
                _ => Done(Answer::Finished),
            }
        }
        Step::Commit => {
            state.commit(ITEMS);
            if rule == Rule::RemovesBeforeItCommits { Done(Answer::Finished) } else { Then(Step::Remove) }
        }
    }
}

fn move_checkpoint(rule: Rule, state: &mut State, request: &mut Request) -> Next {
    let seen = request.seen;
    let is_lease = request.kind == Kind::Lease;
    let breaks = if is_lease { Rule::LeasesUnconditionally } else { Rule::MovesUnconditionally };
    if !request.fresh && rule != breaks {
        return Done(match () {
            () if is_lease => Answer::Nothing,
            () if state.checkpoint.by == request.token => Answer::Again,
            () => Answer::Gone,
        });
    }
    let note = seen.note.unwrap_or(Note { items: 0, confirmed: false, over: false });
    match request.kind {
        Kind::Lease => {
            let (items, alone) = seen.next();
            state.leases += 1;
            state.budget.leases = state.budget.leases.saturating_sub(1);
            request.token = state.leases;
            let note = Some(Note { items, confirmed: false, over: false });
            state.set_checkpoint(Checkpoint { by: request.token, note, alone, ..seen });
            request.seen = Checkpoint { done: seen.done, alone, ..Checkpoint::default() };
            if items == 0 {
                state.fault = Some(Fault::EmptyLease);
            }
            Then(Step::LookAgain)
        }
        Kind::Beat => {
            let note = Some(Note { confirmed: true, over: false, ..note });
            state.set_checkpoint(Checkpoint { note, ..seen });
            let is_first = seen.note.is_some_and(|note| !note.confirmed);
            request.seen = Checkpoint::default();
            if is_first && rule != Rule::FirstBeatLooksOnce { Then(Step::LookAgain) } else { Done(Answer::Continue) }
        }
        Kind::Report { from, to } => {
            let next = report(rule, state, request, note, to - from);
            request.seen = Checkpoint::default();
            next
        }
        Kind::Release { failed } => {
            let alone = seen.alone || (failed && note.confirmed && note.items > 1);
            state.set_checkpoint(Checkpoint { note: None, alone, ..seen });
            state.set_task(state.task);
            Done(Answer::Finished)
        }
    }
}

/// Takes so many outcomes.
fn report(rule: Rule, state: &mut State, request: &Request, note: Note, count: u8) -> Next {
    if state.checkpoint.by != request.token {
        state.fault = Some(Fault::ForeignOutcome);
    }
    let count = count.min(note.items);
    let done = request.seen.done + count;
    let is_over = !state.checkpoint.is_held();
    if !is_over {
        state.accepted = state.accepted.max(done);
    }
    // The time of a worker that is to stop is not extended.
    let note = Note { items: note.items - count, over: is_over && state.is_halted(), ..note };
    let note = Some(note).filter(|note| note.items > 0);
    state.set_checkpoint(Checkpoint { done, note, ..request.seen });
    match note {
        Some(_) => Done(order(state)),
        None if done == ITEMS => Then(concluded(rule)),
        None => Done(Answer::Finished),
    }
}

/// What a worker makes of the answer that it waits for.
pub fn deliver(rule: Rule, state: &mut State, request: &Request, answer: Answer) {
    let Some(asker) = request.asker else { return };
    if let Answer::Lent { from, to } = answer {
        let begun = rule == Rule::BeginsBeforeItsBeat;
        let token = request.token;
        let at = AtTask { token, from, done: from, to, begun, may_work: begun, pending: None, waits: false };
        state.workers[usize::from(asker)] = Worker::At(at);
        return;
    }
    if let (Answer::Refused, Kind::Report { .. }) = (answer, request.kind) {
        state.fault = Some(Fault::RightReportRefused);
    }
    let Some(at) = state.at_mut(asker) else { return state.leave(asker) };
    at.waits = false;
    match answer {
        Answer::Again => {}
        Answer::Continue | Answer::Stop => {
            at.pending = None;
            if let Kind::Report { to, .. } = request.kind {
                at.from = to;
            }
            match answer {
                Answer::Continue if !at.begun => (at.begun, at.may_work) = (true, true),
                Answer::Stop if at.begun => at.may_work = false,
                Answer::Stop => state.leave(asker),
                _ => {}
            }
        }
        _ => state.leave(asker),
    }
}

/// The reads of the job and the tally with which an invocation of `process-items` begins; none if it acknowledges its
/// message at once.
pub const fn begin(state: &State, old: bool) -> Option<Run> {
    if state.committed.is_some() || state.paused || old {
        return None;
    }
    Some(Run { old, step: RunStep::ReadCheckpoint { stopped: state.stopped } })
}

/// A step of `process-items`; its next one. It acknowledges its message after its write.
pub fn run(rule: Rule, state: &mut State, run: Run) -> Option<RunStep> {
    let checkpoint = state.checkpoint;
    Some(match run.step {
        RunStep::ReadCheckpoint { stopped: true } => {
            // What its holder has begun, it reports first.
            let is_at_work = checkpoint.is_held() && checkpoint.note.is_some_and(|note| note.confirmed);
            if is_at_work && rule != Rule::SkipsWhatIsHeld {
                state.send(run.old);
                return None;
            }
            RunStep::Commit { done: checkpoint.done }
        }
        RunStep::ReadCheckpoint { stopped: false } => match !checkpoint.is_held() && checkpoint.done == ITEMS {
            true => RunStep::Commit { done: ITEMS },
            false => RunStep::Offer,
        },
        RunStep::Offer => {
            if state.task.is_none_or(|old| old && !run.old) {
                state.set_task(Some(run.old));
            }
            return None;
        }
        RunStep::Commit { done } => {
            state.commit(done);
            return None;
        }
    })
}
