//! CloudWatch metrics in the Embedded Metric Format: CloudWatch reads them from a line of the log, so they cost no request.
//!
//! All are in the namespace `Rowmill`, with the dimension `function` or `stack`.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::telemetry;

/// The namespace of every metric.
pub const NAMESPACE: &str = "Rowmill";

/// The unit of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Unit {
    /// A number of things.
    Count,
    /// A time in seconds.
    Seconds,
    /// A time in milliseconds.
    Milliseconds,
    /// A size in bytes.
    Bytes,
}

/// Writes the metrics of one run of a function (name, unit, value) as one line on standard output. CloudWatch reads at
/// most a hundred metrics from a line.
pub fn emit(function_name: &str, metrics: &[(&str, Unit, u64)]) {
    telemetry::write_line(&line(function_name, metrics, Timestamp::now()));
}

/// Writes a metric that is counted for the whole stack, as a line like those of [`emit`]. Its only dimension is `stack`, so
/// that one alarm watches all functions.
pub fn emit_for_stack(metric: &str, unit: Unit, value: u64) {
    let function = std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default();
    telemetry::write_line(&line_for_stack(stack_of(&function, telemetry::function_name()), (metric, unit, value)));
}

/// The stack of a Lambda function: the template names it `<stack>-<function>`.
fn stack_of<'a>(lambda_name: &'a str, function_name: &str) -> &'a str {
    lambda_name.strip_suffix(function_name).and_then(|rest| rest.strip_suffix('-')).unwrap_or(lambda_name)
}

fn line_for_stack(stack: &str, (metric, unit, value): (&str, Unit, u64)) -> Value {
    let directive = json!({
        "Namespace": NAMESPACE, "Dimensions": [["stack"]], "Metrics": [{"Name": metric, "Unit": unit}],
    });
    let at = Timestamp::now().as_millisecond();
    json!({ metric: value, "stack": stack, "_aws": { "Timestamp": at, "CloudWatchMetrics": [directive] } })
}

fn line(function_name: &str, metrics: &[(&str, Unit, u64)], now: Timestamp) -> Value {
    let directives: Vec<Value> = metrics.iter().map(|(name, unit, _)| json!({"Name": name, "Unit": unit})).collect();
    // Inserted last, so that no metric can replace these fields.
    let mut line: Map<String, Value> =
        metrics.iter().map(|(name, _, value)| ((*name).to_owned(), json!(value))).collect();
    line.insert("function".to_owned(), json!(function_name));
    line.insert(
        "_aws".to_owned(),
        json!({
            "Timestamp": now.as_millisecond(),
            "CloudWatchMetrics": [{"Namespace": NAMESPACE, "Dimensions": [["function"]], "Metrics": directives}],
        }),
    );
    Value::Object(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_of_the_stack_is_the_same_for_all_its_functions() {
        assert_eq!(stack_of("my-stack-split-job", "split-job"), "my-stack");
        assert_eq!(stack_of("other", "split-job"), "other");
        let line = line_for_stack("my-stack", ("Refused", Unit::Count, 1));
        assert_eq!((&line["stack"], &line["Refused"]), (&json!("my-stack"), &json!(1)));
        let metrics = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(metrics["Dimensions"], json!([["stack"]]));
        assert_eq!(metrics["Metrics"], json!([{"Name": "Refused", "Unit": "Count"}]));
    }

    #[test]
    fn the_line_has_the_format_that_cloudwatch_reads() {
        let metrics = [("JobsDue", Unit::Count, 3), ("OldestDue", Unit::Seconds, 61)];
        let expected = json!({
            "_aws": {
                "Timestamp": 1_750_000_000_123_i64,
                "CloudWatchMetrics": [{
                    "Namespace": "Rowmill",
                    "Dimensions": [["function"]],
                    "Metrics": [{"Name": "JobsDue", "Unit": "Count"}, {"Name": "OldestDue", "Unit": "Seconds"}],
                }],
            },
            "function": "sweep",
            "JobsDue": 3,
            "OldestDue": 61,
        });
        assert_eq!(line("sweep", &metrics, Timestamp::from_millisecond(1_750_000_000_123).unwrap()), expected);
    }
}
