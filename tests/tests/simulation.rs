//! Runs many seeds of the simulation, and proves that it catches broken protocols.

use acceptance::progress::Progress;
use acceptance::simulation::{Broken, first_failure, trace};

/// Number of seeds of the full test: `ROWMILL_SEEDS`, or 20,000.
fn seeds() -> u64 {
    std::env::var("ROWMILL_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(20_000)
}

#[test]
fn twenty_thousand_seeds_hold() {
    let (summary, failure) =
        first_failure(0..seeds(), Broken::Nothing, Some(&Progress::of_seeds("simulation", Some(seeds()))));
    println!("{summary:?}");
    if let Some(failure) = failure {
        panic!("{failure}");
    }
    if seeds() >= 20_000 {
        let missed: Vec<&&str> = CORNERS.iter().filter(|corner| !summary.reached.contains_key(**corner)).collect();
        assert!(missed.is_empty(), "no seed reached {missed:?}");
    }
}

/// The corner cases that the seeds must reach; otherwise their success proves little.
const CORNERS: [&str; 49] = [
    "Api: no slot",
    "Api: paused",
    "Api: resumed",
    "Process: Paused",
    "Lane: Committed",
    "Lane: Continued",
    "Lane: Paused",
    "all lanes at work",
    "Split: Paused",
    "Sweep: recovered",
    "Split: Continued",
    "all chunks sent again after a resume",
    "breaker closed",
    "breaker counts",
    "breaker opened",
    "breaker opened again",
    "breaker probes",
    "cancelled by cancelled",
    "chunk sent again",
    "chunks committed together",
    "commit lost",
    "commit refused because of another one",
    "ended before it was taken up",
    "commit on a further tally",
    "commit: Skipped",
    "commit: Stopped",
    "dead letter: completion",
    "dead letter: isolated",
    "dead letter: items",
    "dead letter: split",
    "failed by capacity_exceeded",
    "failed by completion_failed",
    "failed by deadline_exceeded",
    "failed by item_timeout",
    "failed by source_changed",
    "failed by split_failed",
    "failed by tolerance_exceeded",
    "item failed: poison",
    "item failed: dead_letter",
    "checkpoint lost",
    "checkpoint moved, continued",
    "redriven, completed by nothing",
    "resumed after a pause by the breaker",
    "update recognised after another write",
    "sent on Items(High)",
    "sent on Items(Low)",
    "sent on Splits(High)",
    "tally sent after the one it waits for",
    "zombie",
];

#[test]
fn a_seed_determines_the_whole_run() {
    for seed in 0..50 {
        assert!(
            trace(seed, Broken::Nothing) == trace(seed, Broken::Nothing),
            "seed {seed} runs differently the second time"
        );
    }
}

/// Asserts that one of the first seeds catches the broken protocol. Returns what it found.
fn is_caught(broken: Broken) -> String {
    let (summary, failure) = first_failure(0..20_000, broken, None);
    let failure = failure.unwrap_or_else(|| panic!("none of {} seeds catches {broken:?}", summary.seeds));
    println!("seed {} catches {broken:?}: {}", failure.seed, failure.violation);
    failure.violation
}

#[test]
fn a_commit_without_its_condition_is_caught() {
    is_caught(Broken::CommitWithoutCondition);
}

#[test]
fn a_joint_commit_that_looks_at_one_mark_only_is_caught() {
    is_caught(Broken::JointCommitLooksAtOneMark);
}

#[test]
fn a_tally_closed_before_its_last_commit_is_caught() {
    is_caught(Broken::CloseBeforeCommit);
}

#[test]
fn an_update_without_its_condition_is_caught() {
    is_caught(Broken::UpdateWithoutCondition);
}

#[test]
fn a_resume_that_forgets_chunks_is_caught() {
    is_caught(Broken::ResumeForgetsATally);
}

#[test]
fn a_paused_job_that_completes_with_items_missing_is_caught() {
    is_caught(Broken::CompletePaused);
}

#[test]
fn an_item_of_a_paused_job_is_caught() {
    let found = is_caught(Broken::ProcessPaused);
    assert!(found.contains("an item begins although its job is paused or its attempt is past"), "{found}");
}

#[test]
fn an_item_of_a_past_attempt_is_caught() {
    let found = is_caught(Broken::ProcessPast);
    assert!(found.contains("an item begins although its job is paused or its attempt is past"), "{found}");
}

#[test]
fn a_lane_that_lets_two_through_is_caught() {
    let found = is_caught(Broken::LaneLetsTwoThrough);
    assert!(found.contains("run at once, more than its concurrency of"), "{found}");
}

#[test]
fn a_lane_that_is_not_held_until_the_end_of_its_run_is_caught() {
    let found = is_caught(Broken::LaneIsNotHeld);
    assert!(found.contains("run at once, more than its concurrency of"), "{found}");
}

#[test]
fn a_breaker_that_forgets_its_jobs_is_caught() {
    let found = is_caught(Broken::BreakerForgets);
    assert!(found.contains("it does not end"), "{found}");
}

#[test]
fn an_outage_that_uses_up_deliveries_although_the_breaker_is_open_is_caught() {
    let found = is_caught(Broken::BreakerPausesNothing);
    assert!(found.contains("although the breaker is open"), "{found}");
}

#[test]
fn a_chunk_on_the_queue_of_another_priority_is_caught() {
    let found = is_caught(Broken::PriorityForgotten);
    assert!(found.contains("has High priority, and its message is sent on"), "{found}");
}

#[test]
fn a_tally_that_is_sent_before_its_turn_is_caught() {
    let found = is_caught(Broken::TallySentEarly);
    assert!(found.contains("the tally that it waits for is not half done"), "{found}");
}

#[test]
fn a_next_tally_that_nobody_sends_is_caught() {
    let found = is_caught(Broken::NextTallyForgotten);
    assert!(found.contains("was never sent, although"), "{found}");
}

#[test]
fn a_system_without_a_sweep_is_caught() {
    is_caught(Broken::NoSweep);
}
