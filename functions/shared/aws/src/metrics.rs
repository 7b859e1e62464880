//! CloudWatch metrics in the Embedded Metric Format: CloudWatch reads them from a line of the log, so they cost no request.
//!
//! All are in the namespace `Rowmill`, with the dimension `function`.

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
