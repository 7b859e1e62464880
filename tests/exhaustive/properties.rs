//! Invariants that hold in every state, and what must be reachable.

use std::collections::BTreeMap;

use stateright::Property;

use crate::model::{Protocol, has_ended};
use crate::programs::Chunk;
use crate::rows::{AttemptRows, Counts, Status, Tally, merged};
use crate::tasks::{State, Step, Who, Work};

/// Every mark is set at most once, and every tally is folded at most once.
pub const COUNTED_ONCE: &str = "each chunk and each tally is counted once";
/// An open tally counts the items of its marks, a closed tally counts all its items.
pub const TALLIES_ADD_UP: &str = "the counts of a tally add up";
/// Only closed tallies are folded, and the totals are their sum.
pub const TOTALS_ADD_UP: &str = "the totals are the sum of the closed tallies";
/// No message of a tally is sent before the job row counts the tally.
pub const ONLY_COUNTED: &str = "only counted tallies have messages";
/// One completion takes effect per attempt.
pub const ONE_COMPLETION: &str = "one completion per attempt";
/// A job holds its owner's slot until it ends, and the shared ones unless a pause gave them back.
pub const SLOTS: &str = "an active job holds its slots, an ended job holds none";
/// The final counts of a job are those that the configuration plans.
pub const EXACT: &str = "an ended job's counts are exact";
/// No state is stuck: if nothing can move the job, it has ended.
pub const EVERY_JOB_ENDS: &str = "every job ends";
/// A job with `maxConcurrency` W. After a change of W, at most the larger one while runs of the old one are at work.
pub const AT_MOST_W: &str = "at most W chunks are in flight";

/// Without duplicates, a resend waits for the runs from before the pause.
pub const NOT_TWICE: &str = "no chunk runs from before a pause and from after it at once";

/// A job with A tallies ahead.
pub const NOT_EARLY: &str = "no chunk is in flight before the tally A places before it is half done";

/// The properties of a configuration.
pub fn of(protocol: &Protocol) -> Vec<Property<Protocol>> {
    let mut properties = vec![
        Property::always(COUNTED_ONCE, |_, state| every_attempt(state, is_counted_once)),
        Property::always(TALLIES_ADD_UP, tallies_add_up),
        Property::always(TOTALS_ADD_UP, |_, state| every_attempt(state, totals_add_up)),
        Property::always(ONLY_COUNTED, only_counted_tallies_are_worked_on),
        Property::always(ONE_COMPLETION, |_, State { rows, .. }| {
            usize::from(rows.job.completions) == rows.job.attempt + usize::from(rows.job.status.is_terminal())
        }),
        Property::always(SLOTS, |_, State { rows, .. }| {
            let is_active = !rows.job.status.is_terminal();
            (rows.slots, rows.shared) == (u8::from(is_active), u8::from(is_active && !rows.job.returned))
        }),
        Property::always(EXACT, |protocol, state| !has_ended(state) || is_exact(protocol, state)),
        Property::always(EVERY_JOB_ENDS, |protocol, state| {
            has_ended(state)
                || !state.is_quiet()
                || protocol.sweeps_left(state) > 0
                || state.rows.job.status == Status::Paused
        }),
        Property::sometimes("a job completes", |_, State { rows, .. }| rows.job.status == Status::Completed),
    ];
    if protocol.programs.width.is_some() {
        properties.push(Property::always(AT_MOST_W, at_most_w_are_in_flight));
    }
    if protocol.programs.ahead.is_some() {
        properties.push(Property::always(NOT_EARLY, |protocol: &Protocol, state: &State| {
            let (programs, attempt) = (&protocol.programs, state.rows.job.attempt);
            chunks_at_work(state)
                .filter(|chunk| !programs.is_accounted_for(state, attempt, *chunk))
                .all(|chunk| programs.may_fly(state, attempt, chunk))
        }));
    }
    if protocol.budget.cancels > 0 {
        properties.push(Property::sometimes("a job is cancelled halfway", |_, State { rows, .. }| {
            rows.job.status == Status::Cancelled && rows.job.counts.succeeded > 0 && rows.job.counts.skipped > 0
        }));
    }
    // An early sweep is wrong about its job, and may send any chunk once more.
    if protocol.budget.holds + protocol.budget.widths > 0 && protocol.budget.early_sweeps == 0 {
        properties.push(Property::always(NOT_TWICE, |_, state: &State| {
            state.running().all(|(chunk, old)| !old || !state.running().any(|other| other == (chunk, false)))
        }));
    }
    if protocol.budget.holds > 0 {
        properties.push(Property::sometimes("a resumed job completes", |_, State { rows, .. }| {
            rows.job.epoch > 1 && rows.job.status == Status::Completed
        }));
        properties.push(Property::sometimes("a paused job completes", |_, State { rows, .. }| {
            rows.job.epoch == 1 && rows.job.status == Status::Completed
        }));
        properties.push(Property::sometimes("a paused job holds its chunks back", |_, state: &State| {
            state.rows.job.status == Status::Paused && state.is_quiet()
        }));
    }
    if protocol.budget.widths > 0 {
        properties.push(Property::sometimes(
            "a job that restarted with another width completes",
            |_, State { rows, .. }| {
                rows.job.has_other_width && rows.job.epoch > 1 && rows.job.status == Status::Completed
            },
        ));
    }
    if protocol.budget.redrives > 0 {
        properties.push(Property::sometimes("a redriven job completes without a failure", |_, State { rows, .. }| {
            rows.job.attempt == 1 && rows.job.status == Status::Completed && rows.job.counts.failed == 0
        }));
    }
    properties
}

fn every_attempt(state: &State, holds: fn(&AttemptRows) -> bool) -> bool {
    state.rows.attempts.iter().all(holds)
}

fn is_counted_once(attempt: &AttemptRows) -> bool {
    let once = |times: &u8| *times <= 1;
    let tallies = attempt.tallies.iter().flatten();
    attempt.totals.closed.iter().all(once)
        && tallies.clone().all(|tally| tally.done <= tally.expected && tally.marks.iter().all(once))
}

fn tallies_add_up(protocol: &Protocol, state: &State) -> bool {
    let chunks_per_tally = usize::from(protocol.programs.chunks_per_tally);
    let adds_up = |tally: &Tally, chunks: &[Chunk]| {
        let marked = chunks.iter().zip(tally.marks).filter(|(_, times)| *times > 0);
        let items_marked = marked.map(|(chunk, _)| chunk.items).sum();
        tally.counts.sum() == if tally.is_closed() { tally.items } else { items_marked }
    };
    state.rows.attempts.iter().enumerate().all(|(number, attempt)| {
        let chunks = protocol.programs.chunks(number).chunks(chunks_per_tally);
        attempt
            .tallies
            .iter()
            .zip(chunks)
            .all(|(tally, chunks)| tally.as_ref().is_none_or(|tally| adds_up(tally, chunks)))
    })
}

fn totals_add_up(attempt: &AttemptRows) -> bool {
    let mut sum = Counts::default();
    for (tally, times) in attempt.tallies.iter().zip(attempt.totals.closed) {
        match tally {
            Some(tally) if times > 0 && tally.is_closed() => sum += tally.counts,
            _ if times > 0 => return false,
            _ => {}
        }
    }
    sum == attempt.totals.counts
}

/// The chunks of the current attempt that have a message, waiting or in flight. `Some`: from before a pause.
fn at_work(state: &State) -> impl Iterator<Item = (u8, Option<Old>)> + '_ {
    let tasks = Who::ALL.into_iter().filter_map(|who| state.task(who)).map(|task| {
        let is_run = !matches!(task.step, Step::ReadJob | Step::Acknowledge);
        (task.message, if is_run { Old::Run } else { Old::Message })
    });
    let waiting = state.queues.waiting().map(|message| (message, Old::Message));
    waiting.chain(tasks).filter_map(|(message, old)| match message.work {
        Work::Chunk(chunk) if message.attempt == state.rows.job.attempt => Some((chunk, message.old.then_some(old))),
        _ => None,
    })
}

/// From before a pause: a message that will be dropped, or a run that is at work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Old {
    Message,
    Run,
}

fn chunks_at_work(state: &State) -> impl Iterator<Item = u8> + '_ {
    at_work(state).map(|(chunk, _)| chunk)
}

fn only_counted_tallies_are_worked_on(protocol: &Protocol, state: &State) -> bool {
    chunks_at_work(state).all(|chunk| protocol.programs.address(chunk).0 < state.rows.job.tallies)
}

fn at_most_w_are_in_flight(protocol: &Protocol, state: &State) -> bool {
    let programs = &protocol.programs;
    let flying: BTreeMap<u8, Option<Old>> = at_work(state)
        .filter(|(chunk, old)| {
            *old != Some(Old::Message) && !programs.is_accounted_for(state, state.rows.job.attempt, *chunk)
        })
        .collect();
    let has_old_runs = flying.values().any(Option::is_some);
    let width = if has_old_runs { programs.width.max(programs.other_width) } else { programs.width_of(state) };
    width.is_none_or(|width| flying.len() <= usize::from(width))
}

/// Every counted tally is closed and folded, and the counts are their sum. A completed job has all planned items; a
/// stopped one has all dispatched items.
fn is_exact(protocol: &Protocol, state: &State) -> bool {
    let job = &state.rows.job;
    let attempt = &state.rows.attempts[job.attempt];
    let counted = usize::from(job.tallies);
    let tallies = || attempt.tallies.iter().take(counted).flatten();
    let folded = attempt.totals.closed.iter().take(counted).all(|times| *times == 1);
    let all_closed = tallies().all(Tally::is_closed) && tallies().count() == counted && folded;
    let sum = tallies().fold(Counts::default(), |sum, tally| sum + tally.counts);
    let planned = protocol.programs.chunks(job.attempt).iter().fold(Counts::default(), |sum, chunk| {
        sum + Counts { succeeded: chunk.items - chunk.failing, failed: chunk.failing, skipped: 0 }
    });
    let as_planned = match job.status {
        Status::Completed => sum == planned,
        _ => sum.sum() == tallies().map(|tally| tally.items).sum::<u8>(),
    };
    let items_stay = job.before.is_none_or(|before| before.sum() == job.counts.sum());
    all_closed && as_planned && items_stay && job.counts == merged(job.before, sum)
}
