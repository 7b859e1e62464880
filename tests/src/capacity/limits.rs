//! Limits of AWS, with sources, and assumptions of the model.

/// A number that AWS publishes, and where.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The limited thing.
    pub what: &'static str,
    /// The number in words.
    pub value: &'static str,
    /// The page of the documentation.
    pub page: &'static str,
    pub url: &'static str,
}

/// When the pages were read.
pub const READ: &str = "2026-11-23";

/// The published limits that the model has.
pub const SOURCES: [Source; 9] = [
    Source {
        what: "workers of a queue at first, more a minute, at most",
        value: "5, 300, `MaximumConcurrency` (1,000 at most)",
        page: "Lambda: Configuring scaling behavior for SQS event source mappings",
        url: "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html",
    },
    Source {
        what: "new execution environments of a function",
        value: "1,000 every 10 s; 1,000 at once in an account, unless raised",
        page: "Lambda: Lambda scaling behavior",
        url: "https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html",
    },
    Source {
        what: "writes and reads of a partition of DynamoDB",
        value: "1,000 write units and 3,000 read units a second",
        page: "DynamoDB: Best practices for designing and using partition keys effectively",
        url: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html",
    },
    Source {
        what: "unused capacity that DynamoDB may keep",
        value: "up to 300 s of it, not promised; the model counts on none",
        page: "DynamoDB: DynamoDB burst and adaptive capacity",
        url: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html",
    },
    Source {
        what: "a new on-demand table",
        value: "4,000 write units and 12,000 read units a second",
        page: "DynamoDB: DynamoDB on-demand capacity mode, initial throughput and scaling properties",
        url: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html",
    },
    Source {
        what: "growth of an on-demand table",
        value: "twice the previous peak within 30 minutes",
        page: "AWS re:Post: Why is my on-demand DynamoDB table being throttled?",
        url: "https://repost.aws/knowledge-center/on-demand-table-throttling-dynamodb",
    },
    Source {
        what: "an on-demand table, unless raised",
        value: "40,000 write units and 40,000 read units a second",
        page: "DynamoDB: Quotas in Amazon DynamoDB",
        url: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
    },
    Source {
        what: "requests to a prefix of S3",
        value: "5,500 GET and 3,500 PUT a second",
        page: "AWS re:Post: How can I scale my request rate to S3?",
        url: "https://repost.aws/knowledge-center/s3-object-key-naming-pattern",
    },
    Source {
        what: "messages of a standard queue, of a FIFO queue",
        value: "nearly unlimited; 3,000 a second in batches (job types with lanes, which the model leaves out)",
        page: "SQS: Amazon SQS message quotas",
        url: "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html",
    },
];

/// Workers of a queue at first.
pub const WORKERS_AT_FIRST: f64 = 5.0;

/// Workers that a queue gets more, a second.
pub const WORKERS_PER_SECOND: f64 = 300.0 / 60.0;

/// Write units of a partition key, a second.
pub const KEY_WRITES: f64 = 1000.0;

/// Read units of a partition key, a second.
pub const KEY_READS: f64 = 3000.0;

/// Write units of a new on-demand table, a second.
pub const NEW_TABLE_WRITES: f64 = 4000.0;

/// Write units of an on-demand table, a second, unless raised.
pub const TABLE_WRITES: f64 = 40_000.0;

/// Seconds for which an on-demand table must be used until it takes twice as much.
pub const TABLE_DOUBLES_SECONDS: f64 = 30.0 * 60.0;

/// GET requests to a prefix, a second.
pub const PREFIX_GETS: f64 = 5500.0;

/// Bytes a second that one process reads from S3. AWS publishes no figure; measurements by others found 400 to 700
/// million bits a second.
pub const NETWORK_BYTES: f64 = 75e6;

/// Speed of the scan of `split-job`, in bytes a second. An assumption.
pub const SCANNED_BYTES: f64 = 200e6;

/// The times that the model assumes, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// From a message in a queue to the code of the function.
    pub delivery: f64,
    /// The start of a process.
    pub cold_start: f64,
    /// A request to DynamoDB.
    pub dynamodb: f64,
    /// A request to S3, until the first byte.
    pub s3: f64,
    /// A page of a list of objects.
    pub list: f64,
    /// A batch of messages to SQS.
    pub sqs: f64,
    /// The end of the job behind its last fold: a message, and a process that writes the manifest.
    pub end: f64,
}

/// The times of all results.
pub const TIMES: Times =
    Times { delivery: 0.02, cold_start: 0.15, dynamodb: 0.005, s3: 0.03, list: 0.1, sqs: 0.015, end: 0.5 };

/// Objects of a page of a list.
pub const LISTED: u64 = 1000;

/// Objects whose beginnings the splitter reads at once.
pub const FILES_AHEAD: f64 = split_job::files::FILES_AHEAD as f64;

pub const ROW_BYTES: f64 = 60.0;

/// The time for the items of a chunk: `ProcessTimeoutSeconds` less `ProcessMarginSeconds`.
pub const RUN_SECONDS: f64 = 85.0;

/// The time for a split in an invocation: `SplitTimeoutSeconds` less `SplitMarginSeconds`.
pub const SPLIT_SECONDS: f64 = 280.0;

/// The part of a processor that a function of 1,024 MB has. Lambda gives a whole one at 1,769 MB.
pub const PROCESSOR: f64 = 1024.0 / 1769.0;
