//! CloudWatch metrics in the Embedded Metric Format: CloudWatch reads them from the log, so they cost no request.
//!
//! All are in the namespace [`NAMESPACE`] and have the one dimension `stack`, so that two stacks live in one account
//! and a metric costs once for any number of functions, owners and jobs. `function`, and `refusals` by code, are fields
//! of the line beside it: they can be queried in CloudWatch Logs, and never hold what a client sent.
//!
//! Metrics are counted where the write is made that they speak of: in the adapters. They belong to the process, and are
//! written as one line at the end of an invocation. A process that is killed before that loses them; a reply that is
//! lost for good may leave a write uncounted, and a write that is repeated after a lost reply counts once. So they show
//! what is going on. What a job did is proved by its counts alone.

mod register;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Operation;
use serde_json::{Map, Value, json};

pub use register::{Metric, Unit};

use crate::observe::telemetry;

pub const NAMESPACE: &str = "Rowmill";

pub const DIMENSION: &str = "stack";

/// The most values of one metric that CloudWatch reads from a line.
const VALUES_MAX: usize = 100;

/// The metrics since the last line.
static OPEN: Mutex<Measured> = Mutex::new(Measured::new());

/// Values that were measured and not written yet.
#[derive(Debug)]
struct Measured {
    sums: BTreeMap<Metric, u64>,
    seconds: BTreeMap<Metric, Vec<f64>>,
    refusals: BTreeMap<&'static str, u64>,
}

impl Measured {
    const fn new() -> Self {
        Self { sums: BTreeMap::new(), seconds: BTreeMap::new(), refusals: BTreeMap::new() }
    }

    fn add(&mut self, metric: Metric, count: u64) {
        *self.sums.entry(metric).or_default() += count;
    }

    /// True if a line has no room for a further value.
    fn is_full(&self) -> bool {
        self.seconds.values().any(|values| values.len() >= VALUES_MAX)
    }

    fn refuse(&mut self, operation: Operation, code: &'static str) {
        let is_for_a_job = matches!(
            operation,
            Operation::CreateJob
                | Operation::UndoJob
                | Operation::PruneDataset
                | Operation::DeleteDataset
                | Operation::RedriveJob
        );
        let metric = match ProblemCode::parse(code) {
            Some(ProblemCode::OwnerFull) => Some(Metric::OwnerFull),
            Some(ProblemCode::JobTypeFull) => Some(Metric::JobTypeFull),
            Some(ProblemCode::SystemFull) => Some(Metric::SystemFull),
            Some(ProblemCode::OwnerBlocked) => Some(Metric::RequestsBlocked),
            Some(ProblemCode::TooManyRequests | ProblemCode::TooManyUploads | ProblemCode::TooManyConnections) => {
                Some(Metric::RequestsLimited)
            }
            Some(ProblemCode::InternalError | ProblemCode::Unavailable) => Some(Metric::RequestsFailed),
            _ => None,
        };
        if let Some(metric) = metric {
            self.add(metric, 1);
        }
        if is_for_a_job && metric != Some(Metric::RequestsFailed) {
            self.add(Metric::JobsRefused, 1);
        }
        if is_for_a_job || metric.is_some() {
            *self.refusals.entry(code).or_default() += 1;
        }
    }

    /// The line; none if nothing was measured.
    fn line(self, stack: &str, function: &str, at: Timestamp) -> Option<Value> {
        let of = |metric: &Metric| json!({"Name": metric.name(), "Unit": metric.unit()});
        let directives: Vec<Value> = self.sums.keys().chain(self.seconds.keys()).map(of).collect();
        if directives.is_empty() {
            return None;
        }
        let sums = self.sums.iter().map(|(metric, sum)| (metric.name().to_owned(), json!(sum)));
        let seconds = self.seconds.iter().map(|(metric, values)| (metric.name().to_owned(), json!(values)));
        let mut line: Map<String, Value> = sums.chain(seconds).collect();
        if !self.refusals.is_empty() {
            line.insert("refusals".to_owned(), json!(self.refusals));
        }
        line.insert("function".to_owned(), json!(function));
        line.insert(DIMENSION.to_owned(), json!(stack));
        let directive = json!({"Namespace": NAMESPACE, "Dimensions": [[DIMENSION]], "Metrics": directives});
        line.insert("_aws".to_owned(), json!({"Timestamp": at.as_millisecond(), "CloudWatchMetrics": [directive]}));
        Some(Value::Object(line))
    }
}

/// Adds to a metric. A zero is written, too: it shows that there was nothing to count.
pub fn add(metric: Metric, count: u64) {
    OPEN.lock().add(metric, count);
}

/// Adds to a metric if there is something to count.
pub fn add_any(metric: Metric, count: u64) {
    if count > 0 {
        add(metric, count);
    }
}

/// Adds 1 to a metric, and writes all at once: the process may end without finishing an invocation.
pub fn count_at_once(metric: Metric) {
    add(metric, 1);
    write();
}

pub fn time(metric: Metric, took: Duration) {
    let mut open = OPEN.lock();
    // Milliseconds are enough, and a whole number of them has a short text.
    open.seconds.entry(metric).or_default().push((took.as_secs_f64() * 1000.0).round() / 1000.0);
    let is_full = open.is_full();
    drop(open);
    if is_full {
        write();
    }
}

/// Counts a request that was answered with this problem code.
pub fn refused(operation: Operation, code: &'static str) {
    OPEN.lock().refuse(operation, code);
}

/// Writes what was measured since the last call as one line on standard output, if anything was.
pub fn write() {
    let measured = std::mem::replace(&mut *OPEN.lock(), Measured::new());
    let lambda_name = std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default();
    let function = telemetry::function_name();
    if let Some(line) = measured.line(stack_of(&lambda_name, function), function, Timestamp::now()) {
        telemetry::write_line(&line);
    }
}

/// The stack of a Lambda function: the template names it `<stack>-<function>`.
fn stack_of<'a>(lambda_name: &'a str, function_name: &str) -> &'a str {
    lambda_name.strip_suffix(function_name).and_then(|rest| rest.strip_suffix('-')).unwrap_or(lambda_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Timestamp {
        Timestamp::from_millisecond(1_750_000_000_123).unwrap()
    }

    #[test]
    fn a_line_has_the_format_that_cloudwatch_reads() {
        let mut measured = Measured::new();
        measured.add(Metric::ChunksCommitted, 1);
        measured.add(Metric::ChunksCommitted, 2);
        measured.seconds.insert(Metric::ChunkDuration, vec![0.25, 1.5]);
        let expected = json!({
            "_aws": {
                "Timestamp": 1_750_000_000_123_i64,
                "CloudWatchMetrics": [{
                    "Namespace": "Rowmill",
                    "Dimensions": [["stack"]],
                    "Metrics": [
                        {"Name": "ChunksCommitted", "Unit": "Count"}, {"Name": "ChunkDuration", "Unit": "Seconds"},
                    ],
                }],
            },
            "stack": "my-stack",
            "function": "process-items",
            "ChunksCommitted": 3,
            "ChunkDuration": [0.25, 1.5],
        });
        assert_eq!(measured.line("my-stack", "process-items", at()), Some(expected));
        assert_eq!(Measured::new().line("my-stack", "process-items", at()), None, "nothing to say, no line");
    }

    #[test]
    fn a_metric_is_the_same_for_all_functions_of_a_stack() {
        assert_eq!(stack_of("my-stack-split-job", "split-job"), "my-stack");
        assert_eq!(stack_of("other", "split-job"), "other");
    }

    #[test]
    fn a_refusal_counts_by_its_code_and_by_what_was_asked_for() {
        let mut measured = Measured::new();
        for (operation, code) in [
            (Operation::CreateJob, "system_full"),
            (Operation::CreateJob, "invalid_params"),
            (Operation::RedriveJob, "system_full"),
            (Operation::CreateJob, "unavailable"),
            (Operation::CancelJob, "too_many_requests"),
            (Operation::CancelJob, "job_ended"),
            (Operation::ShowJob, "not_found"),
        ] {
            measured.refuse(operation, code);
        }
        let sums: Vec<_> = measured.sums.iter().map(|(metric, sum)| (metric.name(), *sum)).collect();
        let expected = [("JobsRefused", 3), ("SystemFull", 2), ("RequestsLimited", 1), ("RequestsFailed", 1)];
        assert_eq!(sums, expected);
        let line = measured.line("s", "create-job", at()).unwrap();
        assert_eq!(
            line["refusals"],
            json!({"invalid_params": 1, "system_full": 2, "too_many_requests": 1, "unavailable": 1})
        );
    }

    #[test]
    fn a_line_never_holds_more_values_than_cloudwatch_reads() {
        let mut measured = Measured::new();
        measured.seconds.insert(Metric::DispatchDelay, vec![0.1; VALUES_MAX - 1]);
        assert!(!measured.is_full());
        measured.seconds.entry(Metric::DispatchDelay).or_default().push(0.1);
        assert!(measured.is_full());
    }
}
