//! Every interleaving of one task and two workers.
//!
//! A model of its own, written from [the tables about tasks](../../../../docs/protocol.md#tasks): the checkpoint, the
//! task, the messages, and the job as far as they depend on it. A chunk has two items. Each request of a worker, and each
//! invocation of `process-items`, takes one read or one write at a time, and may die between any two.
//!
//! There is no clock. A note may be over at any time once the worker that holds the task has stopped, or has not begun:
//! that is what the two clocks guarantee. A worker may stop at any time, and report what it has done long after.
//!
//! The model leaves out poison, transient errors, objects, and the counts by outcome. The sweep only closes the tally of a
//! stopped job: no crash of a worker or a function needs it.
//!
//! The explorations have 8.6 million states together, and take about 80 s of one core.

mod model;
mod state;
mod steps;

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use model::{
    ACCEPTED_COUNTS, NO_EMPTY_LEASE, NO_TASK_LOST, NOTHING_UNDONE, ONE_AT_WORK, ONLY_HOLDER, ONLY_PROCESSED, Rule,
    Tasks,
};
use state::Budget;

const CALM: Budget =
    Budget { leases: 2, beats: 0, deaths: 0, repeats: 0, crashes: 0, duplicates: 0, pauses: 0, cancels: 0 };

/// Explores all states and asserts that every property holds in each.
fn explore(budget: Budget) {
    let began = Instant::now();
    let checker = Tasks { rule: Rule::AsBuilt, budget }.checker().spawn_bfs().join();
    println!("{} states in {:.1} s", checker.unique_state_count(), began.elapsed().as_secs_f64());
    checker.assert_properties();
}

#[test]
fn what_workers_report_counts_once_whoever_dies() {
    explore(Budget { leases: 3, deaths: 2, ..CALM });
    explore(Budget { deaths: 1, crashes: 1, ..CALM });
    explore(Budget { deaths: 1, duplicates: 1, ..CALM });
}

#[test]
fn beats_and_reports_that_meet_or_are_repeated_count_once() {
    explore(Budget { beats: 1, repeats: 2, ..CALM });
    explore(Budget { repeats: 1, deaths: 1, crashes: 1, ..CALM });
}

#[test]
fn a_pause_a_resume_and_a_cancel_lose_no_task_and_no_outcome() {
    explore(Budget { pauses: 1, deaths: 1, ..CALM });
    explore(Budget { pauses: 1, crashes: 1, ..CALM });
    explore(Budget { cancels: 1, deaths: 1, ..CALM });
    explore(Budget { cancels: 1, duplicates: 1, crashes: 1, ..CALM });
    explore(Budget { cancels: 1, pauses: 1, ..CALM });
}

/// Asserts that the exploration finds a state that violates the property if a rule is dropped, and prints its path.
fn catch(rule: Rule, budget: Budget, property: &'static str) {
    let wanted = HasDiscoveries::AllOf([property].into());
    let checker = Tasks { rule, budget }.checker().finish_when(wanted).spawn_bfs().join();
    let path = checker.assert_any_discovery(property);
    println!("{rule:?}: {property}: violated after {:#?}", path.into_actions());
}

#[test]
fn every_rule_of_a_task_that_is_dropped_is_caught() {
    let crash = Budget { crashes: 1, ..CALM };
    let repeat = Budget { beats: 1, repeats: 1, ..CALM };
    let cancel = Budget { cancels: 1, duplicates: 1, ..CALM };
    for (rule, budget, property) in [
        (Rule::ReportIgnoresToken, CALM, ONLY_HOLDER),
        (Rule::ReportIgnoresDone, repeat, ONLY_PROCESSED),
        (Rule::MovesUnconditionally, repeat, NOTHING_UNDONE),
        (Rule::LeasesUnconditionally, CALM, NOTHING_UNDONE),
        (Rule::LeasesUnconditionally, CALM, ONE_AT_WORK),
        (Rule::LeasesWhatIsDone, crash, NO_EMPTY_LEASE),
        (Rule::BeginsBeforeItsBeat, CALM, ONE_AT_WORK),
        (Rule::FirstBeatLooksOnce, Budget { cancels: 1, ..CALM }, ACCEPTED_COUNTS),
        (Rule::RemovesBeforeItCommits, crash, NO_TASK_LOST),
        (Rule::RemovesBeforeItSends, Budget { crashes: 2, ..CALM }, NO_TASK_LOST),
        (Rule::SkipsWhatIsHeld, cancel, ACCEPTED_COUNTS),
    ] {
        catch(rule, budget, property);
    }
}
