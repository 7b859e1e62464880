//! Metrics in CloudWatch, by its Embedded Metric Format: a line of the log that CloudWatch reads them from, so that no
//! request is made for them.
//!
//! All are in the namespace `Rowmill`, each under the dimension `function`.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::telemetry;

/// The namespace of every metric.
pub const NAMESPACE: &str = "Rowmill";

/// What a metric is measured in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Unit {
    /// How many.
    Count,
    /// How long, in seconds.
    Seconds,
    /// How long, in milliseconds.
    Milliseconds,
    /// How much, in bytes.
    Bytes,
}

/// Writes the metrics of one run of a function, by name, unit and value, as one line on standard output. CloudWatch takes
/// at most a hundred of them from a line.
pub fn emit(function_name: &str, metrics: &[(&str, Unit, u64)]) {
    telemetry::write_line(&line(function_name, metrics, Timestamp::now()));
}

fn line(function_name: &str, metrics: &[(&str, Unit, u64)], now: Timestamp) -> Value {
    let directives: Vec<Value> = metrics.iter().map(|(name, unit, _)| json!({"Name": name, "Unit": unit})).collect();
    // What the line says as a whole stands beside the values, so a metric cannot take its place.
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
    fn the_line_has_the_form_that_cloudwatch_reads() {
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
