//! Limits of a job: time, failures, parallel chunks; and its priority.

use std::time::Duration;

use rowmill_api::request::{MAX_CONCURRENCY_MAX, Tolerance};
use rowmill_core::model::job::Priority;

use super::{parse_span, word_parser};

/// The deadline of a job.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct DeadlineArgs {
    /// Stop the job after this time: 30m, 4h, …
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub deadline: Option<Duration>,
    /// The deadline in seconds
    #[arg(long, value_name = "N", conflicts_with = "deadline",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub deadline_seconds: Option<u64>,
}

/// How long a new job may wait, and is kept.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SpanArgs {
    /// Stop the job if none of its rows has begun after this time: 30m, 4h, …
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub start_within: Option<Duration>,
    /// Delete the job and its results this long after its end: 1h, 7d, … (default: as long as the stack keeps jobs)
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub keep: Option<Duration>,
}

impl SpanArgs {
    pub fn start_within_seconds(&self) -> Option<u64> {
        self.start_within.map(|span| span.as_secs())
    }

    pub fn keep_seconds(&self) -> Option<u64> {
        self.keep.map(|span| span.as_secs())
    }
}

impl DeadlineArgs {
    pub fn seconds(&self) -> Option<u64> {
        self.deadline_seconds.or_else(|| self.deadline.map(|span| span.as_secs()))
    }
}

/// The failures that a job tolerates. The bounds are independent.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ToleranceArgs {
    /// Stop the job when more items than this have failed
    #[arg(long, value_name = "N")]
    pub tolerance_count: Option<u64>,
    /// Stop the job when more than this percentage of the items processed have failed
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub tolerance_percent: Option<f64>,
    /// Check the percentage only after this many items are processed
    #[arg(long, value_name = "N", requires = "tolerance_percent")]
    pub tolerance_minimum_items: Option<u64>,
}

impl ToleranceArgs {
    /// The `tolerance` member of a new job, if there is a bound.
    pub fn to_tolerance(&self) -> Option<Tolerance> {
        let (count, percent) = (self.tolerance_count, self.tolerance_percent);
        let tolerance = Tolerance { percent, count, minimum_items: self.tolerance_minimum_items };
        (count.is_some() || percent.is_some()).then_some(tolerance)
    }
}

/// The workers that process a job: their number and kind.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WorkersArgs {
    /// Process at most this many chunks of the job at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CONCURRENCY_MAX)))]
    pub max_concurrency: Option<u32>,
    /// The job's priority; the stack says which one its owner may use at most [default of a new job: normal]
    #[arg(long, value_parser = word_parser(Priority::ALL))]
    pub priority: Option<Priority>,
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    number.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        deadline: DeadlineArgs,
        #[command(flatten)]
        tolerance: ToleranceArgs,
        #[command(flatten)]
        workers: WorkersArgs,
    }

    fn line(arguments: &[&str]) -> Result<Line, String> {
        Line::try_parse_from([&["rowmill"], arguments].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_deadline_is_a_span_or_seconds_and_not_both() {
        let seconds = |arguments: &[&str]| line(arguments).map(|line| line.deadline.seconds());
        assert_eq!(seconds(&[]), Ok(None));
        assert_eq!(seconds(&["--deadline", "1h30m"]), Ok(Some(5400)));
        assert_eq!(seconds(&["--deadline-seconds", "90"]), Ok(Some(90)));
        assert!(seconds(&["--deadline", "1h", "--deadline-seconds", "90"]).is_err());
        assert!(seconds(&["--deadline-seconds", "0"]).is_err());
    }

    #[test]
    fn a_priority_is_one_of_its_words() {
        let priority = |arguments: &[&str]| line(arguments).map(|line| line.workers.priority);
        assert_eq!(priority(&[]), Ok(None));
        for expected in Priority::ALL {
            assert_eq!(priority(&["--priority", expected.as_str()]), Ok(Some(expected)));
        }
        for wrong in ["High", "", "urgent"] {
            let error = priority(&["--priority", wrong]).unwrap_err();
            assert!(error.contains("[possible values: high, normal, low]"), "{error}");
        }
    }

    #[test]
    fn a_tolerance_has_the_bounds_that_are_given() {
        let tolerance = |arguments: &[&str]| line(arguments).map(|line| line.tolerance.to_tolerance());
        assert_eq!(tolerance(&[]), Ok(None));
        let count = Tolerance { count: Some(0), percent: None, minimum_items: None };
        assert_eq!(tolerance(&["--tolerance-count=0"]), Ok(Some(count)));
        let percent = Tolerance { count: None, percent: Some(2.5), minimum_items: Some(100) };
        assert_eq!(tolerance(&["--tolerance-percent=2.5%", "--tolerance-minimum-items=100"]), Ok(Some(percent)));
        assert!(tolerance(&["--tolerance-minimum-items=100"]).is_err(), "of what percentage?");
        assert!(tolerance(&["--tolerance-percent=101"]).is_err());
    }
}
