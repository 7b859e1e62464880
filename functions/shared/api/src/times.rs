//! Parameters that hold only above a time limit.
//!
//! `rowmill` checks them before it changes a stack, and each function that reads both times at its start.

/// The shortest `ProcessTimeoutSeconds` for production. A shorter one is for tests, whose stacks wait for recoveries.
const SHORTEST_IN_PRODUCTION: u64 = 60;

/// A parameter, how many times its value counts, what that must be above, and what happens otherwise.
type Bound = (&'static str, u64, &'static str, &'static str);

const BOUNDS: [Bound; 4] = [
    ("StopGraceSeconds", 1, "ProcessTimeoutSeconds", "chunks that are running count as skipped"),
    ("StaleSeconds", 1, "ProcessTimeoutSeconds", "isolated chunks that are running are given up"),
    ("BreakerProbeSeconds", 10, "ProcessTimeoutSeconds", "another job takes over a probe whose first chunk is running"),
    ("SweepBackoffMaxSeconds", 1, "StaleSeconds", "recoveries do not become rarer"),
];

/// A shorter time only costs: messages and runs that nobody needs.
const COSTS: [Bound; 3] = [
    ("StaleSeconds", 1, "SplitTimeoutSeconds", "jobs that are being split are recovered"),
    ("StaleSeconds", 1, "CompleteTimeoutSeconds", "jobs whose results are being composed are recovered"),
    ("StaleSeconds", 1, "DeadLetterTimeoutSeconds", "jobs whose dead letter is being settled are recovered"),
];

/// A time that is too short beside another one, in words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TooShort(String);

/// Checks the parameters whose `seconds` are known.
///
/// # Errors
/// The first one that is too short.
pub fn check(seconds: impl Fn(&str) -> Option<u64>) -> Result<(), TooShort> {
    let is_for_tests = seconds("ProcessTimeoutSeconds").is_none_or(|limit| limit < SHORTEST_IN_PRODUCTION);
    let costs = COSTS.into_iter().filter(|_| !is_for_tests);
    for (parameter, times, above, otherwise) in BOUNDS.into_iter().chain(costs) {
        let (Some(value), Some(limit)) = (seconds(parameter), seconds(above)) else { continue };
        let least = limit / times + 1;
        if value < least {
            let beside = format!("beside {above}={limit} it must be at least {least}, or {otherwise}");
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
            ("StopGraceSeconds", 121, "ProcessTimeoutSeconds", 120),
            ("StaleSeconds", 121, "ProcessTimeoutSeconds", 120),
            ("BreakerProbeSeconds", 13, "ProcessTimeoutSeconds", 120),
            ("SweepBackoffMaxSeconds", 901, "StaleSeconds", 900),
            ("StaleSeconds", 901, "SplitTimeoutSeconds", 900),
            ("StaleSeconds", 121, "CompleteTimeoutSeconds", 120),
            ("StaleSeconds", 121, "DeadLetterTimeoutSeconds", 120),
        ] {
            let beside = |value| refusal_of(&[(parameter, value), (limit, seconds), ("ProcessTimeoutSeconds", 60)]);
            assert_eq!(beside(least), None);
            let expected =
                format!("{parameter} is {}; beside {limit}={seconds} it must be at least {least}, or ", least - 1);
            assert!(beside(least - 1).is_some_and(|text| text.starts_with(&expected)), "{expected}");
        }
    }

    #[test]
    fn in_a_stack_for_tests_recoveries_may_be_early_but_nothing_may_be_lost() {
        let with_stale =
            |stale| refusal_of(&[("ProcessTimeoutSeconds", 10), ("StaleSeconds", stale), ("SplitTimeoutSeconds", 300)]);
        assert_eq!(with_stale(11), None);
        assert!(with_stale(10).is_some());
        assert_eq!(refusal_of(&[("StaleSeconds", 5), ("SplitTimeoutSeconds", 300)]), None, "not all are known");
    }
}
