//! Runs many seeds of the simulation, and proves that it finds faults.

use acceptance::progress::Progress;
use acceptance::simulation::{Broken, fails, first_failure, trace};

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
const CORNERS: [&str; 75] = [
    "results copied",
    "results not copied",
    "items at work",
    "Process: Offered",
    "Worker: Finished",
    "a worker gives its task back",
    "a worker is told to stop",
    "a worker reports twice",
    "items reported",
    "worker too late",
    "a service accepts",
    "a service answers at once",
    "a service does not answer",
    "permit taken",
    "permit not taken",
    "all permits in use",
    "Api: no slot",
    "Api: paused",
    "Api: resumed",
    "Process: Dropped",
    "Lane: Committed",
    "Lane: Continued",
    "Lane: Dropped",
    "all lanes at work",
    "Split: Paused",
    "Sweep: recovered",
    "Split: Continued",
    "all chunks sent again after a resume",
    "width changed",
    "breaker closed",
    "breaker counts",
    "breaker opened",
    "breaker opened again",
    "breaker probes",
    "cancelled by cancelled",
    "chunk sent again",
    "chunks committed together",
    "chunks of several jobs together",
    "commit lost",
    "commit won before",
    "commit refused because of another one",
    "ended before it was taken up",
    "commit on a further tally",
    "commit: Skipped",
    "commit: Stopped",
    "created in place of a stopped job",
    "dedupe key known",
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
    "key remembered for the same job",
    "item failed: dead_letter",
    "checkpoint lost",
    "checkpoint moved, continued",
    "redriven, completed by nothing",
    "resumed after a pause by the breaker",
    "update recognised after another write",
    "slots given back by a paused job",
    "stopped before its deadline for lack of capacity",
    "slots taken again",
    "slots taken after a wait",
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

/// The faults that can be built into the simulation, each with words of what a seed finds. The mutations of the code
/// itself are in [`acceptance::mutations`]; they need a build of their own.
const FAULTS: [(Broken, &str); 25] = [
    (Broken::CommitWithoutCondition, ""),
    (Broken::JointCommitLooksAtOneMark, ""),
    (Broken::UpdateWithoutCondition, ""),
    (Broken::CloseBeforeCommit, ""),
    (Broken::NoSweep, ""),
    (Broken::ResumeForgetsATally, ""),
    (Broken::ResendsAtOnce, "its run from before the pause is at work"),
    (Broken::CompletePaused, ""),
    (Broken::ProcessPaused, "an item begins although its job is paused or its attempt is past"),
    (Broken::ProcessPausedBeside, "an item begins although its job is paused or its attempt is past"),
    (Broken::ProcessPast, "an item begins although its job is paused or its attempt is past"),
    (Broken::LaneLetsTwoThrough, "run at once, more than its concurrency of"),
    (Broken::LaneIsNotHeld, "run at once, more than its concurrency of"),
    (Broken::BreakerForgets, "it does not end"),
    (Broken::BreakerUnseen, "although the breaker is open"),
    (Broken::PriorityForgotten, "has High priority, and its message is sent on"),
    (Broken::TallySentEarly, "the tally that it waits for is not half done"),
    (Broken::NextTallyForgotten, "was never sent, although"),
    (Broken::DedupeForgets, "does the same as"),
    (Broken::HolderUnseen, "two workers are at its items at once"),
    (Broken::ReportWithoutCondition, ""),
    (Broken::PermitWithoutCondition, "workers are at items at once, with"),
    (Broken::NoGrace, "is closed while a run from before the stop is at work on it"),
    (Broken::ClocksDiffer, ""),
    (Broken::SlotsReturnedTwice, "slots are taken"),
];

/// The seeds that failed on the way to this protocol, with what they found.
const ONCE_FAILED: &[(u64, &str)] = &[
    (500_085_637, "a run that could not send its message withdrew another run's note"),
    (900_047_092, "two runs were at an isolated chunk, since the clock of one was ahead"),
    (920_304_742, "a request paused its job after its time limit, and a chunk was sent while a run was at work on it"),
    (920_352_846, "a request that was answered with an older job created another one when it was repeated"),
    (
        1_002_000_832,
        "the permit of a dead worker waited for its paused job, which waited for the job that lacked the permit",
    ),
    (
        1_010_227_922,
        "a worker reported a transient failure while it was at the next item: that one was lent, and the reply was lost",
    ),
    (1_001_011_909, "a run called a service after its time was over, and its job had ended"),
    (1_201_538_246, "an item ended as poison, since two runs that paused their job could not withdraw their notes"),
];

#[test]
fn seeds_that_failed_once_hold() {
    for (seed, found) in ONCE_FAILED {
        assert_eq!(fails(*seed, Broken::Nothing).map(|failure| failure.violation), None, "seed {seed}: {found}");
    }
}

#[test]
fn each_fault_that_is_built_in_is_found() {
    for (broken, words) in FAULTS {
        // Another check may see the effects of the fault first.
        let mut from = 0;
        let found = loop {
            let (summary, failure) = first_failure(from..20_000, broken, None);
            let failure =
                failure.unwrap_or_else(|| panic!("none of {} seeds from {from} finds {broken:?}", summary.seeds));
            if failure.violation.contains(words) {
                break failure;
            }
            from = failure.seed + 1;
        };
        println!("seed {} finds {broken:?}: {}", found.seed, found.violation);
    }
}
