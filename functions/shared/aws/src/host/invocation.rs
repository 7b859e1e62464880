//! The cost of an invocation, logged once at its end. `rowmill bench` adds these lines up.

use std::time::Instant;

use jiff::Timestamp;
use rowmill_core::model::cost::Capacity;
use serde::Serialize;

use crate::observe::trace::{self, TraceId};
use crate::observe::{metrics, telemetry};
use crate::sdk::meter::{self, Requests};
use crate::sdk::usage_shares;

#[derive(Debug)]
pub struct Invocation {
    function: &'static str,
    request_id: Option<String>,
    begun: Instant,
}

impl Invocation {
    pub fn begin(function: &'static str, request_id: Option<String>) -> Self {
        usage_shares::begin_invocation();
        Self { function, request_id, begun: Instant::now() }
    }

    /// An invocation that starts now, in a function whose invocations have nothing to do with each other: no job pays
    /// for what earlier ones used.
    pub fn begin_apart(function: &'static str, request_id: Option<String>) -> Self {
        usage_shares::OF_PROCESS.drop_open();
        Self::begin(function, request_id)
    }

    /// Writes its metrics, and logs its cost.
    pub fn finish(self) {
        metrics::write();
        let traces = trace::take_touched();
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let used = meter::take();
        telemetry::write_line(&Finished {
            timestamp: Timestamp::now(),
            level: "INFO",
            message: "invocation finished",
            function: self.function,
            version: env!("CARGO_PKG_VERSION"),
            request_id: self.request_id.as_deref(),
            duration_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            requests: used.requests,
            s3_writes: used.s3_writes,
            capacity: used.capacity,
            peak_rss_bytes: peak_rss_bytes(),
            traces: traces.iter().map(TraceId::to_string).collect(),
        });
    }
}

/// Also if its handler panics.
impl Drop for Invocation {
    fn drop(&mut self) {
        usage_shares::end_invocation();
    }
}

#[derive(Serialize)]
struct Finished<'a> {
    timestamp: Timestamp,
    level: &'static str,
    message: &'static str,
    function: &'static str,
    version: &'static str,
    #[serde(rename = "invocation.id", skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    duration_ms: u64,
    #[serde(rename = "aws.requests")]
    requests: Requests,
    #[serde(rename = "aws.s3_writes")]
    s3_writes: u64,
    #[serde(rename = "aws.capacity")]
    capacity: Capacity,
    #[serde(rename = "process.peak_rss_bytes")]
    peak_rss_bytes: Option<u64>,
    /// Of the jobs that the invocation worked on.
    #[serde(rename = "trace.ids", skip_serializing_if = "Vec::is_empty")]
    traces: Vec<String>,
}

/// The peak of this process's memory, if the system has it.
fn peak_rss_bytes() -> Option<u64> {
    parse_peak_rss(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_peak_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_format_that_the_bench_reads() {
        let line = Finished {
            timestamp: Timestamp::UNIX_EPOCH,
            level: "INFO",
            message: "invocation finished",
            function: "process-items",
            version: "0.1.0",
            request_id: None,
            duration_ms: 12,
            requests: Requests { dynamodb: 3, eventbridge: 0, s3: 2, sqs: 0 },
            s3_writes: 1,
            capacity: Capacity { read: 1.0, write: 2.5 },
            peak_rss_bytes: Some(23_456_789),
            traces: Vec::new(),
        };
        let expected = serde_json::json!({
            "timestamp": "1970-01-01T00:00:00Z", "level": "INFO", "message": "invocation finished",
            "function": "process-items", "version": "0.1.0", "duration_ms": 12,
            "aws.requests": {"dynamodb": 3, "eventbridge": 0, "s3": 2, "sqs": 0}, "aws.s3_writes": 1, "aws.capacity": {"read": 1.0, "write": 2.5}, "process.peak_rss_bytes": 23_456_789,
        });
        assert_eq!(serde_json::to_value(&line).unwrap(), expected);
    }

    #[test]
    fn the_peak_memory_is_parsed_from_the_status_of_the_process() {
        assert_eq!(parse_peak_rss("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"), Some(2048 * 1024));
        assert_eq!(parse_peak_rss("Name:\tx\n"), None);
    }
}
