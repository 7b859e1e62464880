//! Every interleaving of the smallest jobs.
//!
//! A model of the counting protocol, written from `docs/protocol.md`, independently of the code. `stateright`
//! explores all of its states. The simulation draws interleavings at random; this test tries every interleaving.
//! Therefore the jobs are tiny: two or three chunks on two tallies, two workers, and a few faults.
//!
//! | file | holds |
//! |---|---|
//! | `rows` | the rows, and each write under its condition |
//! | `tasks` | the steps of the functions, each named after its row of `docs/protocol.md`; messages and invocations |
//! | `programs` | the order of the steps, depending on what each step finds |
//! | `commits` | the steps of a commit, and those that follow it |
//! | `resends` | the steps that follow a resume |
//! | `model` | what may happen: steps, deliveries, faults, cancel, redrive, sweep |
//! | `properties` | what must hold in every state |
//! | `workers` | a model of its own: one task and two workers |
//!
//! The model has no clock. An invocation may wait before any step for any time. A lease may expire at any time after
//! its holder died (with [`Budget::zombies`], also before). A stopped job's grace may end at any time. A resend begins
//! when the runs from before the pause have ended. The sweep runs when the job no longer moves (with
//! [`Budget::early_sweeps`], also before).
//!
//! The model leaves out items, objects and checkpoints (no condition of these writes reads them), dead letters, and the
//! writes of other jobs.
//!
//! Every job ends: [`no_path_returns_to_an_earlier_state`] shows that no path returns to an earlier state, so every
//! path reaches a state in which nothing moves. In that state the job must have ended, after at most one sweep per dead
//! invocation and per lease that expired while its holder was alive.

mod commits;
mod holds;
mod model;
mod programs;
mod properties;
mod resends;
mod rows;
mod tasks;
mod workers;

use std::collections::HashSet;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use model::Protocol;
use programs::{Chunk, Programs, Rules};
use properties::{AT_MOST_W, COUNTED_ONCE, EVERY_JOB_ENDS, EXACT, NOT_TWICE, ONLY_COUNTED};
use tasks::{Budget, State};

const CHUNKS: [Chunk; 4] = [
    Chunk { items: 1, failing: 0 },
    Chunk { items: 2, failing: 1 },
    Chunk { items: 1, failing: 0 },
    Chunk { items: 1, failing: 0 },
];

/// Four chunks: three on the first tally, one on the second.
const FOUR_CHUNKS: Programs = Programs {
    rules: Rules::AsBuilt,
    chunks: &CHUNKS,
    chunks_per_tally: 3,
    width: None,
    other_width: None,
    ahead: None,
    joint: false,
};

/// Three chunks: two on the first tally, one on the second.
const THREE_CHUNKS: Programs = Programs { chunks: CHUNKS.split_at(3).0, chunks_per_tally: 2, ..FOUR_CHUNKS };

/// Two chunks, each on its own tally.
const TWO_TALLIES: Programs = Programs { chunks: CHUNKS.split_at(2).0, chunks_per_tally: 1, ..THREE_CHUNKS };

/// Two chunks on one tally.
const ONE_TALLY: Programs = Programs { chunks_per_tally: 2, ..TWO_TALLIES };

const ONE_CHUNK: Programs = Programs { chunks: CHUNKS.split_at(1).0, chunks_per_tally: 1, ..THREE_CHUNKS };

/// No faults and no requests.
const CALM: Budget = Budget {
    crashes: 0,
    chunk_crashes: 0,
    duplicates: 0,
    lost_replies: 0,
    zombies: 0,
    hand_overs: 0,
    cancels: 0,
    redrives: 0,
    holds: 0,
    widths: 0,
    early_sweeps: 0,
    sweeps: 0,
};

/// One invocation dies; one sweep repairs it.
const CRASH: Budget = Budget { crashes: 1, sweeps: 1, ..CALM };

/// Explores all states of a job and asserts that every property holds in each.
fn explore(programs: Programs, budget: Budget) {
    let began = Instant::now();
    let checker = Protocol { programs, budget }.checker().spawn_bfs().join();
    let (states, seconds) = (checker.unique_state_count(), began.elapsed().as_secs_f64());
    println!("{states} states in {seconds:.1} s");
    checker.assert_properties();
}

#[test]
fn three_chunks_are_counted_exactly() {
    explore(THREE_CHUNKS, CALM);
}

#[test]
fn three_chunks_are_counted_exactly_under_a_crash_and_a_duplicate() {
    explore(THREE_CHUNKS, Budget { duplicates: 1, ..CRASH });
}

#[test]
fn two_tallies_are_counted_exactly_under_a_crash_a_duplicate_and_a_cancel() {
    explore(TWO_TALLIES, Budget { duplicates: 1, cancels: 1, ..CRASH });
}

#[test]
fn two_tallies_are_counted_exactly_under_two_crashes_and_a_duplicate() {
    explore(TWO_TALLIES, Budget { crashes: 2, duplicates: 1, sweeps: 2, ..CALM });
}

#[test]
fn two_tallies_are_counted_exactly_under_a_lost_reply_and_an_early_lease_expiry() {
    explore(TWO_TALLIES, Budget { lost_replies: 1, zombies: 1, sweeps: 2, ..CRASH });
}

#[test]
fn a_split_that_hands_over_loses_nothing() {
    explore(TWO_TALLIES, Budget { hand_overs: 1, lost_replies: 1, ..CRASH });
}

#[test]
fn two_tallies_are_counted_exactly_under_an_early_sweep() {
    explore(TWO_TALLIES, Budget { early_sweeps: 1, duplicates: 1, ..CALM });
    explore(TWO_TALLIES, Budget { early_sweeps: 1, cancels: 1, ..CALM });
    explore(TWO_TALLIES, Budget { early_sweeps: 1, ..CRASH });
}

#[test]
fn a_window_of_one_chunk_never_stalls_and_never_widens() {
    explore(Programs { width: Some(1), ..THREE_CHUNKS }, Budget { duplicates: 1, ..CALM });
    explore(Programs { width: Some(1), ..THREE_CHUNKS }, CRASH);
    explore(Programs { width: Some(1), ..TWO_TALLIES }, Budget { duplicates: 1, cancels: 1, ..CRASH });
}

/// A job whose owner may change `maxConcurrency`.
const fn rewidened(programs: Programs, from: u8, to: u8) -> Programs {
    Programs { width: Some(from), other_width: Some(to), ..programs }
}

const WIDTH: Budget = Budget { widths: 1, ..CALM };

#[test]
fn a_change_of_the_width_neither_loses_nor_doubles_a_place() {
    explore(rewidened(THREE_CHUNKS, 2, 1), WIDTH);
    explore(rewidened(THREE_CHUNKS, 2, 1), Budget { chunk_crashes: 1, ..WIDTH });
    explore(rewidened(THREE_CHUNKS, 1, 2), WIDTH);
    explore(rewidened(TWO_TALLIES, 1, 2), Budget { widths: 1, ..CRASH });
    explore(rewidened(TWO_TALLIES, 2, 1), Budget { holds: 1, ..WIDTH });
    explore(rewidened(ONE_TALLY, 2, 1), Budget { cancels: 1, sweeps: 1, ..WIDTH });
}

/// A job whose second tally waits for its first one.
const fn one_ahead(programs: Programs) -> Programs {
    Programs { ahead: Some(1), ..programs }
}

#[test]
fn a_tally_that_waits_for_another_one_is_never_sent_early_and_never_forgotten() {
    explore(one_ahead(FOUR_CHUNKS), CALM);
    explore(one_ahead(THREE_CHUNKS), Budget { duplicates: 1, ..CALM });
    explore(one_ahead(THREE_CHUNKS), CRASH);
    explore(one_ahead(TWO_TALLIES), Budget { duplicates: 1, cancels: 1, ..CRASH });
    explore(one_ahead(TWO_TALLIES), Budget { lost_replies: 1, zombies: 1, sweeps: 2, ..CRASH });
    explore(one_ahead(TWO_TALLIES), Budget { early_sweeps: 1, ..CRASH });
    explore(one_ahead(TWO_TALLIES), Budget { holds: 1, ..CRASH });
}

#[test]
fn a_death_of_a_run_needs_no_sweep() {
    for programs in [THREE_CHUNKS, one_ahead(THREE_CHUNKS), Programs { width: Some(1), ..THREE_CHUNKS }] {
        explore(programs, Budget { chunk_crashes: 1, ..CALM });
    }
    explore(one_ahead(FOUR_CHUNKS), Budget { chunk_crashes: 1, ..CALM });
    explore(one_ahead(TWO_TALLIES), Budget { chunk_crashes: 2, lost_replies: 1, ..CALM });
    explore(one_ahead(TWO_TALLIES), Budget { chunk_crashes: 1, holds: 1, ..CALM });
}

/// A job whose chunks may commit together.
const fn joint(programs: Programs) -> Programs {
    Programs { joint: true, ..programs }
}

#[test]
fn chunks_that_commit_together_are_counted_exactly() {
    explore(joint(THREE_CHUNKS), CALM);
    explore(joint(one_ahead(FOUR_CHUNKS)), CALM);
    explore(joint(ONE_TALLY), Budget { duplicates: 2, ..CALM });
    explore(joint(ONE_TALLY), Budget { duplicates: 1, ..CRASH });
    explore(joint(ONE_TALLY), Budget { duplicates: 1, cancels: 1, ..CRASH });
    explore(joint(ONE_TALLY), Budget { lost_replies: 1, duplicates: 1, sweeps: 1, ..CALM });
    explore(joint(ONE_TALLY), Budget { early_sweeps: 1, duplicates: 1, ..CRASH });
    explore(joint(ONE_TALLY), Budget { holds: 1, ..CRASH });
    explore(joint(one_ahead(THREE_CHUNKS)), Budget { duplicates: 1, ..CALM });
    explore(joint(one_ahead(THREE_CHUNKS)), Budget { chunk_crashes: 1, lost_replies: 1, ..CALM });
}

#[test]
fn a_redrive_counts_its_items_once_more_and_no_others() {
    explore(ONE_TALLY, Budget { redrives: 1, duplicates: 1, ..CRASH });
    explore(ONE_TALLY, Budget { redrives: 1, cancels: 1, ..CRASH });
}

#[test]
fn a_pause_and_a_resume_lose_nothing() {
    explore(THREE_CHUNKS, Budget { holds: 1, ..CALM });
    explore(ONE_CHUNK, Budget { holds: 2, ..CALM });
    explore(Programs { width: Some(1), ..TWO_TALLIES }, Budget { holds: 1, ..CALM });
}

#[test]
fn a_pause_and_a_resume_lose_nothing_under_faults() {
    explore(TWO_TALLIES, Budget { holds: 1, ..CRASH });
    explore(TWO_TALLIES, Budget { holds: 1, lost_replies: 1, ..CALM });
    explore(ONE_TALLY, Budget { holds: 1, duplicates: 1, ..CALM });
    explore(ONE_TALLY, Budget { holds: 1, cancels: 1, sweeps: 1, ..CALM });
    explore(ONE_CHUNK, Budget { holds: 1, early_sweeps: 1, ..CALM });
    explore(TWO_TALLIES, Budget { holds: 1, hand_overs: 1, ..CALM });
}

#[test]
fn a_redrive_can_be_paused() {
    explore(ONE_TALLY, Budget { redrives: 1, holds: 1, ..CALM });
}

#[test]
#[ignore = "takes some minutes and some gigabytes"]
fn small_jobs_are_counted_exactly_under_all_events_at_once() {
    explore(THREE_CHUNKS, Budget { duplicates: 1, cancels: 1, ..CRASH });
    explore(Programs { width: Some(1), ..THREE_CHUNKS }, Budget { duplicates: 1, cancels: 1, ..CRASH });
    explore(ONE_TALLY, Budget { redrives: 1, duplicates: 1, cancels: 1, ..CRASH });
    explore(ONE_TALLY, Budget { holds: 1, duplicates: 1, cancels: 1, ..CRASH });
    explore(TWO_TALLIES, Budget { holds: 2, ..CALM });
    explore(Programs { width: Some(1), ..THREE_CHUNKS }, Budget { holds: 1, ..CALM });
    explore(ONE_TALLY, Budget { holds: 1, early_sweeps: 1, ..CALM });
}

/// Asserts that the exploration finds a state that violates the property if a rule is dropped, and prints its path.
fn catch(rules: Rules, programs: Programs, budget: Budget, property: &'static str) {
    let protocol = Protocol { programs: Programs { rules, ..programs }, budget };
    let wanted = HasDiscoveries::AllOf([property].into());
    let checker = protocol.checker().finish_when(wanted).spawn_bfs().join();
    let path = checker.assert_any_discovery(property);
    println!("{rules:?}: {property}: violated after {:#?}", path.into_actions());
}

#[test]
fn every_rule_that_is_dropped_is_caught() {
    let (twice, hold) = (Budget { duplicates: 1, ..CALM }, Budget { holds: 1, ..CALM });
    for (rules, programs, budget, property) in [
        (Rules::CommitUnconditionally, TWO_TALLIES, twice, COUNTED_ONCE),
        (Rules::CommitUnconditionally, TWO_TALLIES, twice, EXACT),
        (Rules::JointCommitLooksAtOneMark, joint(ONE_TALLY), twice, COUNTED_ONCE),
        (Rules::JointCommitLooksAtOneMark, joint(ONE_TALLY), twice, EXACT),
        (Rules::FoldBeforeCommit, TWO_TALLIES, CALM, EXACT),
        (Rules::NoSweep, TWO_TALLIES, CRASH, EVERY_JOB_ENDS),
        (Rules::SendBeforeCount, TWO_TALLIES, CALM, ONLY_COUNTED),
        (Rules::ForgetOnResume, TWO_TALLIES, hold, EVERY_JOB_ENDS),
        (Rules::ResendAtOnce, TWO_TALLIES, hold, NOT_TWICE),
        (Rules::EndPaused, TWO_TALLIES, hold, EXACT),
        (Rules::ForgetNextTally, one_ahead(TWO_TALLIES), CALM, EVERY_JOB_ENDS),
        (Rules::SettleWithoutNextTally, one_ahead(TWO_TALLIES), Budget { chunk_crashes: 1, ..CALM }, EVERY_JOB_ENDS),
        (Rules::LookBeforeCount, one_ahead(TWO_TALLIES), CALM, EVERY_JOB_ENDS),
        (Rules::StopAtGap, rewidened(THREE_CHUNKS, 2, 1), WIDTH, EVERY_JOB_ENDS),
        (Rules::LookAtOneBefore, rewidened(THREE_CHUNKS, 2, 1), WIDTH, AT_MOST_W),
    ] {
        catch(rules, programs, budget, property);
    }
}

#[test]
fn no_path_returns_to_an_earlier_state() {
    let budget = Budget { duplicates: 1, ..CRASH };
    for programs in [TWO_TALLIES, joint(ONE_TALLY), one_ahead(TWO_TALLIES), Programs { width: Some(1), ..TWO_TALLIES }]
    {
        let protocol = Protocol { programs, budget };
        let (mut on_path, mut behind) = (HashSet::new(), HashSet::new());
        for state in protocol.init_states() {
            walk(&protocol, state, &mut on_path, &mut behind);
        }
        println!("{} states, none twice on one path", behind.len());
    }
}

/// Walks every path from this state that has not been walked yet. The deepest has about a hundred steps.
fn walk(protocol: &Protocol, state: State, on_path: &mut HashSet<State>, behind: &mut HashSet<State>) {
    assert!(on_path.insert(state.clone()), "a path returns to {state:#?}");
    for next in protocol.next_states(&state) {
        if on_path.contains(&next) || !behind.contains(&next) {
            walk(protocol, next, on_path, behind);
        }
    }
    on_path.remove(&state);
    behind.insert(state);
}
