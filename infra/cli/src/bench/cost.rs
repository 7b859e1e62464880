//! Usage of the functions during a benchmark, by function, and its AWS list price.

use std::collections::BTreeMap;

use rowmill_core::model::cost::{self, PriceList, dollars};
use serde::Serialize;

use super::invocations::Invocation;

/// Functions fed by queues. For each invocation the Lambda service sends one receive and one delete to SQS.
const QUEUE_FUNCTIONS: [&str; 5] = ["split-job", "process-items", "complete-job", "dead-letter", "receive-file"];

/// Runs every minute with or without jobs, so it does not count towards the cost of a job.
const SWEEP: &str = "sweep";

/// Usage of the functions for a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionUsage {
    /// Requests by service and function: `requests["dynamodb"]["process-items"]`.
    pub requests: BTreeMap<String, BTreeMap<String, u64>>,
    /// DynamoDB read request units.
    pub read_units: f64,
    /// DynamoDB write request units.
    pub write_units: f64,
    /// S3 requests of the functions that are charged like PUT.
    pub s3_writes: u64,
    /// S3 writes of the upload itself.
    pub upload_puts: u64,
    pub invocations: BTreeMap<String, u64>,
    /// Lambda memory × time.
    pub gb_seconds: f64,
    /// Requests the Lambda service makes to SQS for the event source mappings, estimated: one receive and one delete
    /// per invocation. Empty long polls (about 0.25 per second, queue and idle poller set) are not included.
    pub mapping_requests: u64,
    /// Peak memory of a process, by function.
    pub peak_rss_bytes: BTreeMap<String, u64>,
}

impl FunctionUsage {
    /// Adds up `invocations` except those of the sweep. `memory_mb` returns the memory size of a function.
    pub fn of(invocations: &[Invocation], memory_mb: impl Fn(&str) -> u32) -> Self {
        let mut usage = Self::default();
        for invocation in invocations.iter().filter(|invocation| invocation.function != SWEEP) {
            let function = &invocation.function;
            for (service, requests) in &invocation.requests {
                let by_function = usage.requests.entry(service.clone()).or_default();
                *by_function.entry(function.clone()).or_default() += requests;
            }
            usage.read_units += invocation.capacity.read;
            usage.write_units += invocation.capacity.write;
            usage.s3_writes += invocation.s3_writes;
            *usage.invocations.entry(function.clone()).or_default() += 1;
            let gigabytes = f64::from(memory_mb(function)) / 1024.0;
            usage.gb_seconds += gigabytes * invocation.duration_ms / 1000.0;
            if QUEUE_FUNCTIONS.contains(&function.as_str()) {
                usage.mapping_requests += 2;
            }
            if let Some(bytes) = invocation.peak_rss_bytes {
                let peak = usage.peak_rss_bytes.entry(function.clone()).or_default();
                *peak = bytes.max(*peak);
            }
        }
        usage
    }

    /// Requests the functions sent, all services together.
    pub fn requests_sent(&self) -> u64 {
        self.requests.values().flat_map(BTreeMap::values).sum()
    }

    fn of_service(&self, service: &str) -> u64 {
        self.requests.get(service).map_or(0, |functions| functions.values().sum())
    }

    /// Their sums, without the upload and the event source mappings.
    pub fn sum(&self) -> cost::Usage {
        cost::Usage {
            dynamodb_requests: self.of_service("dynamodb"),
            read_halves: whole(self.read_units * 2.0),
            write_halves: whole(self.write_units * 2.0),
            s3_reads: self.of_service("s3").saturating_sub(self.s3_writes),
            s3_writes: self.s3_writes,
            sqs_requests: self.of_service("sqs"),
            lambda_requests: self.invocations.values().sum(),
            lambda_mb_ms: whole(self.gb_seconds * 1024.0 * 1000.0),
        }
    }

    /// List price in dollars.
    pub fn cost(&self) -> Cost {
        let prices = PriceList::US_EAST_1;
        let of_functions = prices.price(&self.sum());
        let of_upload = prices.price(&cost::Usage { s3_writes: self.upload_puts, ..cost::Usage::NONE });
        let of_mappings = prices.price(&cost::Usage::NONE.with_sends(self.mapping_requests));
        Cost {
            dynamodb: dollars(of_functions.dynamodb),
            sqs: dollars(of_functions.sqs),
            sqs_mappings: dollars(of_mappings.sqs),
            s3: dollars(of_functions.s3 + of_upload.s3),
            lambda: dollars(of_functions.lambda),
        }
    }
}

/// A sum of units, which are not below zero, as a whole number.
fn whole(units: f64) -> u64 {
    units.max(0.0).round() as u64
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// DynamoDB request units.
    pub dynamodb: f64,
    pub sqs: f64,
    /// SQS requests of the event source mappings, estimated.
    pub sqs_mappings: f64,
    /// S3 requests, the upload's included.
    pub s3: f64,
    /// Lambda requests and duration.
    pub lambda: f64,
}

impl Cost {
    pub fn total(&self) -> f64 {
        self.dynamodb + self.sqs + self.sqs_mappings + self.s3 + self.lambda
    }

    pub fn times(self, times: f64) -> Self {
        Self {
            dynamodb: self.dynamodb * times,
            sqs: self.sqs * times,
            sqs_mappings: self.sqs_mappings * times,
            s3: self.s3 * times,
            lambda: self.lambda * times,
        }
    }
}

#[cfg(test)]
mod tests {
    use rowmill_core::model::cost::Capacity;

    use super::*;

    fn invocation(function: &str, s3: u64, sqs: u64) -> Invocation {
        Invocation {
            function: function.into(),
            duration_ms: 500.0,
            requests: [("s3".to_owned(), s3), ("sqs".to_owned(), sqs)].into(),
            capacity: Capacity { read: 2.0, write: 4.0 },
            s3_writes: s3 / 3,
            peak_rss_bytes: Some(1000 + s3),
        }
    }

    #[test]
    fn invocations_add_up_by_service_and_function() {
        let invocations = [
            invocation("process-items", 3, 1),
            invocation("process-items", 4, 0),
            invocation("job-status", 0, 0),
            invocation("sweep", 9, 9),
        ];
        let usage = FunctionUsage::of(&invocations, |_| 512);
        assert_eq!(usage.requests["s3"]["process-items"], 7);
        assert_eq!(usage.requests_sent(), 8);
        assert_eq!((usage.read_units, usage.write_units), (6.0, 12.0));
        assert_eq!(usage.gb_seconds, 0.75);
        assert_eq!(usage.mapping_requests, 4, "job-status is called over HTTP, not from a queue");
        assert_eq!(usage.peak_rss_bytes["process-items"], 1004);
        assert_eq!(usage.invocations["process-items"], 2);
    }

    #[test]
    fn the_sums_are_in_the_units_of_the_price_list() {
        let usage = FunctionUsage::of(&[invocation("process-items", 3, 1), invocation("split-job", 4, 2)], |_| 512);
        let expected = cost::Usage {
            dynamodb_requests: 0,
            read_halves: 8,
            write_halves: 16,
            s3_reads: 5,
            s3_writes: 2,
            sqs_requests: 3,
            lambda_requests: 2,
            lambda_mb_ms: 512_000,
        };
        assert_eq!(usage.sum(), expected);
    }

    #[test]
    fn the_price_list_is_applied_by_service() {
        let usage = FunctionUsage {
            requests: [
                ("s3".to_owned(), [("process-items".to_owned(), 3_000)].into()),
                ("sqs".to_owned(), [("split-job".to_owned(), 1_000_000)].into()),
                ("dynamodb".to_owned(), [("process-items".to_owned(), 5)].into()),
            ]
            .into(),
            read_units: 2e6,
            write_units: 1e6,
            s3_writes: 1_000,
            upload_puts: 1_000,
            invocations: [("process-items".to_owned(), 1_000_000)].into(),
            gb_seconds: 1_000.0,
            mapping_requests: 2_000_000,
            ..FunctionUsage::default()
        };
        let cost = usage.cost();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        near(cost.dynamodb, 0.625 + 0.25);
        near(cost.sqs, 0.40);
        near(cost.sqs_mappings, 0.80);
        near(cost.s3, 0.0008 + 0.010);
        near(cost.lambda, 0.20 + 0.013_333_4);
        near(cost.total(), 2.299_133_4);
        near(cost.times(0.5).total(), 1.149_566_7);
    }
}
