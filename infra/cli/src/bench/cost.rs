//! The AWS list price of a job.
//!
//! List prices of us-east-1 as published since November 2024, arm64 for Lambda, no free tier and no discount. Each
//! constant names the page with the price, which may change.

use std::collections::BTreeMap;

use serde::Serialize;

use super::invocations::Invocation;

/// Dollars per DynamoDB write request unit, on demand (aws.amazon.com/dynamodb/pricing/on-demand).
pub const DYNAMODB_WRITE_UNIT: f64 = 0.625 / 1e6;

/// Dollars per DynamoDB read request unit, on demand (aws.amazon.com/dynamodb/pricing/on-demand).
pub const DYNAMODB_READ_UNIT: f64 = 0.125 / 1e6;

/// Dollars per request to a standard SQS queue (aws.amazon.com/sqs/pricing).
pub const SQS_REQUEST: f64 = 0.40 / 1e6;

/// Dollars per S3 GET of the standard class (aws.amazon.com/s3/pricing).
pub const S3_GET: f64 = 0.0004 / 1e3;

/// Dollars per S3 PUT, POST or LIST of the standard class (aws.amazon.com/s3/pricing).
pub const S3_PUT: f64 = 0.005 / 1e3;

/// Dollars per Lambda request (aws.amazon.com/lambda/pricing).
pub const LAMBDA_REQUEST: f64 = 0.20 / 1e6;

/// Dollars per GB-second of Lambda on arm64 (aws.amazon.com/lambda/pricing).
pub const LAMBDA_GB_SECOND: f64 = 0.000_013_333_4;

/// Functions fed by queues. For each invocation the Lambda service sends one receive and one delete to SQS.
const QUEUE_FUNCTIONS: [&str; 5] = ["split-job", "process-items", "complete-job", "dead-letter", "receive-file"];

/// Runs every minute with or without jobs, so it does not count towards the cost of a job.
const SWEEP: &str = "sweep";

/// What a job used, in the units that AWS bills.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Requests by service and function: `requests["dynamodb"]["process-items"]`.
    pub requests: BTreeMap<String, BTreeMap<String, u64>>,
    /// DynamoDB read request units.
    pub read_units: f64,
    /// DynamoDB write request units.
    pub write_units: f64,
    /// S3 writes of the upload itself.
    pub upload_puts: u64,
    /// Invocations by function.
    pub invocations: BTreeMap<String, u64>,
    /// Lambda memory × time.
    pub gb_seconds: f64,
    /// Requests the Lambda service makes to SQS for the event source mappings, estimated: one receive and one delete per
    /// invocation. Empty long polls (about 0.25 per second, queue and idle poller set) are not included.
    pub mapping_requests: u64,
    /// Peak memory of a process, by function.
    pub peak_rss_bytes: BTreeMap<String, u64>,
}

impl Usage {
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

    /// List price in dollars.
    pub fn cost(&self) -> Cost {
        let invocations: u64 = self.invocations.values().sum();
        Cost {
            dynamodb: self.write_units * DYNAMODB_WRITE_UNIT + self.read_units * DYNAMODB_READ_UNIT,
            sqs: self.of_service("sqs") as f64 * SQS_REQUEST,
            sqs_mappings: self.mapping_requests as f64 * SQS_REQUEST,
            // All rows of the benchmark succeed, so no function writes an object: all S3 requests of functions are reads.
            s3: self.of_service("s3") as f64 * S3_GET + self.upload_puts as f64 * S3_PUT,
            lambda: invocations as f64 * LAMBDA_REQUEST + self.gb_seconds * LAMBDA_GB_SECOND,
        }
    }
}

/// Dollars by service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// DynamoDB request units.
    pub dynamodb: f64,
    /// SQS requests of the functions.
    pub sqs: f64,
    /// SQS requests of the event source mappings, estimated.
    pub sqs_mappings: f64,
    /// S3 requests, the upload's included.
    pub s3: f64,
    /// Lambda requests and duration.
    pub lambda: f64,
}

impl Cost {
    /// All services together.
    pub fn total(&self) -> f64 {
        self.dynamodb + self.sqs + self.sqs_mappings + self.s3 + self.lambda
    }

    /// The cost multiplied by `times`.
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
    use super::super::invocations::Capacity;
    use super::*;

    fn invocation(function: &str, s3: u64, sqs: u64) -> Invocation {
        Invocation {
            function: function.into(),
            duration_ms: 500.0,
            requests: [("s3".to_owned(), s3), ("sqs".to_owned(), sqs)].into(),
            capacity: Capacity { read: 2.0, write: 4.0 },
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
        let usage = Usage::of(&invocations, |_| 512);
        assert_eq!(usage.requests["s3"]["process-items"], 7);
        assert_eq!(usage.requests_sent(), 8);
        assert_eq!((usage.read_units, usage.write_units), (6.0, 12.0));
        assert_eq!(usage.gb_seconds, 0.75);
        assert_eq!(usage.mapping_requests, 4, "job-status is called over HTTP, not from a queue");
        assert_eq!(usage.peak_rss_bytes["process-items"], 1004);
        assert_eq!(usage.invocations["process-items"], 2);
    }

    #[test]
    fn the_price_list_is_applied_by_service() {
        let usage = Usage {
            requests: [
                ("s3".to_owned(), [("process-items".to_owned(), 2_000)].into()),
                ("sqs".to_owned(), [("split-job".to_owned(), 1_000_000)].into()),
                ("dynamodb".to_owned(), [("process-items".to_owned(), 5)].into()),
            ]
            .into(),
            read_units: 2e6,
            write_units: 1e6,
            upload_puts: 1_000,
            invocations: [("process-items".to_owned(), 1_000_000)].into(),
            gb_seconds: 1_000.0,
            mapping_requests: 2_000_000,
            ..Usage::default()
        };
        let cost = usage.cost();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        near(cost.dynamodb, 0.625 + 0.25);
        near(cost.sqs, 0.40);
        near(cost.sqs_mappings, 0.80);
        near(cost.s3, 0.0008 + 0.005);
        near(cost.lambda, 0.20 + 0.013_333_4);
        near(cost.total(), 2.294_133_4);
        near(cost.times(0.5).total(), 1.147_066_7);
    }
}
