//! Settings that hold only above others.
//!
//! `rowmill` checks them before it changes a stack, and each function that reads both times at its start.

use rowmill_core::model::breaker::PROBE_TIMES;
use rowmill_core::model::job::{LEASE_MARGIN, REQUEST_LIMIT};

/// The shortest `ProcessTimeoutSeconds` for production. A shorter one is for tests, whose stacks wait for recoveries.
const SHORTEST_IN_PRODUCTION: u64 = 60;

/// A setting, a factor for its value, the settings, each with its factor, and seconds whose sum the product must be
/// above, and what happens otherwise.
type Bound = (&'static str, u32, &'static [(&'static str, u64)], u64, &'static str);

const BOUNDS: [Bound; 6] = [
    ("StopGraceSeconds", 1, &[(PROCESS, 1)], 0, "chunks that are running count as skipped"),
    ("StaleSeconds", 1, &[(PROCESS, 1)], 0, "isolated chunks that are running are given up"),
    // The chunks of a probe are sent after the grace.
    (
        "BreakerProbeSeconds",
        PROBE_TIMES,
        &[(PROCESS, 1), ("StopGraceSeconds", 1)],
        0,
        "another job takes over a running probe",
    ),
    ("SweepBackoffMaxSeconds", 1, &[("StaleSeconds", 1)], 0, "recoveries do not become rarer"),
    ("SplitTimeoutSeconds", 1, &[("SplitMarginSeconds", 1)], 1, "no time is left to split"),
    // An item is looked at ten times during its timeout, so it is found a tenth later at most.
    (
        PROCESS,
        10,
        &[("ProcessMarginSeconds", 10), ("ItemTimeoutSeconds", 11)],
        0,
        "an item that holds its thread is not found before the run hands over",
    ),
];

/// In a stack for tests, which has one clock, a shorter time only costs messages and runs.
const BOUNDS_IN_PRODUCTION: [Bound; 4] = [
    // A run may begin up to the end of the request that changes its job.
    ("StopGraceSeconds", 1, &[(PROCESS, 1)], REQUEST_AND_CLOCKS, "running chunks count as skipped, or run twice"),
    ("StaleSeconds", 1, &[("SplitTimeoutSeconds", 1)], 0, "jobs that are being split are recovered"),
    (
        "StaleSeconds",
        1,
        &[("CompleteTimeoutSeconds", 1)],
        0,
        "jobs whose results are being composed, or whose dead letter is being settled, are recovered",
    ),
    // With the shortest time limit of chunks that is 300 s, the time limit of `fetch-file`. None that is fixed is longer.
    ("StaleSeconds", 1, &[(PROCESS, 1)], 240, "what is deleted may be erased while a function is at work on it"),
];

const PROCESS: &str = "ProcessTimeoutSeconds";

/// The time limit of a request, and the time by which clocks may differ.
const REQUEST_AND_CLOCKS: u64 = REQUEST_LIMIT.as_secs() + LEASE_MARGIN.as_secs();

/// A time that is too short beside another one, in words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TooShort(String);

/// The settings of each bound.
pub fn settings() -> impl Iterator<Item = Vec<&'static str>> {
    let bounds = BOUNDS.into_iter().chain(BOUNDS_IN_PRODUCTION);
    bounds.map(|(setting, _, above, ..)| above.iter().map(|(name, _)| *name).chain([setting]).collect())
}

/// Checks the settings whose `seconds` are known.
///
/// # Errors
/// The first one that is too short.
pub fn check(seconds: impl Fn(&str) -> Option<u64>) -> Result<(), TooShort> {
    let is_for_tests = seconds(PROCESS).is_none_or(|limit| limit < SHORTEST_IN_PRODUCTION);
    let in_production = BOUNDS_IN_PRODUCTION.into_iter().filter(|_| !is_for_tests);
    for (parameter, times, above, room, otherwise) in BOUNDS.into_iter().chain(in_production) {
        let limits: Option<Vec<u64>> = above.iter().map(|(name, _)| seconds(name)).collect();
        let (Some(value), Some(limits)) = (seconds(parameter), limits) else { continue };
        let weighted = above.iter().zip(&limits).map(|((_, factor), limit)| limit.saturating_mul(*factor));
        let least = weighted.fold(room, u64::saturating_add) / u64::from(times) + 1;
        if value < least {
            let limits: Vec<String> =
                above.iter().zip(limits).map(|((name, _), limit)| format!("{name}={limit}")).collect();
            let beside = format!("beside {} it must be at least {least}, or {otherwise}", limits.join(" and "));
            return Err(TooShort(format!("{parameter} is {value}; {beside}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal_of(values: &[(&str, u64)]) -> Option<String> {
        let seconds = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, seconds)| *seconds);
        check(seconds).err().map(|error| error.to_string())
    }

    #[test]
    fn each_time_must_be_above_its_bound() {
        for (parameter, least, limit, seconds) in [
            ("StopGraceSeconds", 170, PROCESS, 120),
            ("StaleSeconds", 361, PROCESS, 120),
            ("BreakerProbeSeconds", 22, "ProcessTimeoutSeconds=60 and StopGraceSeconds", 150),
            ("SweepBackoffMaxSeconds", 901, "StaleSeconds", 900),
            ("StaleSeconds", 901, "SplitTimeoutSeconds", 900),
            ("StaleSeconds", 401, "CompleteTimeoutSeconds", 400),
            ("SplitTimeoutSeconds", 22, "SplitMarginSeconds", 20),
        ] {
            let last = limit.rsplit(' ').next().unwrap();
            let beside = |value| refusal_of(&[(parameter, value), (last, seconds), (PROCESS, 60)]);
            assert_eq!(beside(least), None);
            let expected =
                format!("{parameter} is {}; beside {limit}={seconds} it must be at least {least}, or ", least - 1);
            assert!(beside(least - 1).is_some_and(|text| text.starts_with(&expected)), "{expected}");
        }
    }

    #[test]
    fn an_item_that_holds_its_thread_is_found_before_its_run_hands_over() {
        let beside = |limit, margin, item| {
            refusal_of(&[(PROCESS, limit), ("ProcessMarginSeconds", margin), ("ItemTimeoutSeconds", item)])
        };
        assert_eq!([beside(3, 1, 1), beside(60, 25, 30), beside(90, 50, 30)], [None, None, None]);
        assert_eq!(
            beside(60, 27, 30).unwrap(),
            "ProcessTimeoutSeconds is 60; beside ProcessMarginSeconds=27 and ItemTimeoutSeconds=30 it must be at least \
             61, or an item that holds its thread is not found before the run hands over"
        );
    }

    #[test]
    fn in_a_stack_for_tests_recoveries_may_be_early_but_nothing_may_be_lost() {
        let with_stale = |stale| refusal_of(&[(PROCESS, 10), ("StaleSeconds", stale), ("SplitTimeoutSeconds", 300)]);
        let with_grace = |grace| refusal_of(&[(PROCESS, 10), ("StopGraceSeconds", grace)]);
        assert_eq!((with_stale(11), with_grace(11)), (None, None));
        assert!(with_stale(10).is_some() && with_grace(10).is_some());
        assert_eq!(refusal_of(&[("StaleSeconds", 5), ("SplitTimeoutSeconds", 300)]), None, "not all are known");
    }
}
