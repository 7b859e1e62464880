use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_api::cost::Usage;
use rowmill_core::model::breaker::BreakerPause;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner, RunId};
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::job::{Job, JobWarning, Lease, Priority, Redrive, SplitState, Stop};
use rowmill_core::model::results::Results;
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::{PortError, WAKE_SHARDS};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use super::attribute;
use crate::adapters::dynamodb::attributes::{Item, from_item, number, text, to_item};
use crate::observe::trace::{self, TraceId};

/// The sort key of the job row.
pub const JOB_ROW: &str = "job";

/// The primary key of the job row.
pub fn job_key(job: JobGuid) -> Item {
    Item::from([("jobId".to_owned(), text(job)), ("row".to_owned(), text(JOB_ROW))])
}

/// How each field of [`Job`] is stored in the job row. [`job_item`] adds the attributes that are no fields of it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Job", rename_all = "camelCase")]
struct JobRow {
    #[serde(rename = "jobId")]
    job_guid: JobGuid,
    owner: Owner,
    job_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file_guid: Option<FileGuid>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_stored: bool,
    #[serde(default)]
    data_start: u64,
    data_bytes: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<JobWarning>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_concurrency: Option<u32>,
    #[serde(default, skip_serializing_if = "is_normal")]
    priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tallies_ahead: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    metadata: Option<Map<String, Value>>,
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<JobOutcome>,
    attempt: u32,
    #[serde(flatten, with = "attribute::split")]
    split: SplitState,
    #[serde(flatten, with = "attribute::lease")]
    lease: Option<Lease>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    stop: Option<Stop>,
    #[serde(flatten, with = "attribute::counts")]
    counts: Option<Counts>,
    #[serde(flatten, with = "attribute::usage")]
    usage: Usage,
    completions: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    redrive: Option<Redrive>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    results: Option<Results>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    composing: Option<RunId>,
    #[serde(default, skip_serializing_if = "is_zero")]
    recoveries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused_from: Option<Status>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    paused_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    breaker_pause: Option<BreakerPause>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pauses: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resend_from: Option<u32>,
    #[serde(with = "attribute::millis")]
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    first_chunk_at: Option<Timestamp>,
    #[serde(with = "attribute::millis")]
    moved_at: Timestamp,
    #[serde(with = "attribute::millis")]
    deadline_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    wake_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::expiry")]
    expires_at: Option<Timestamp>,
    revision: u64,
}

/// A job in the form of its row.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Stored(#[serde(with = "JobRow")] Job);

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_normal(priority: &Priority) -> bool {
    *priority == Priority::Normal
}

/// Encodes the job row.
///
/// # Errors
/// `Invalid` if its metadata cannot be written as JSON.
pub fn job_item(doing: &'static str, job: &Job) -> Result<Item, PortError> {
    let mut item = to_item(doing, &Stored(job.clone()))?;
    item.insert("row".to_owned(), text(JOB_ROW));
    if job.wake_at.is_some() {
        item.insert("wakeShard".to_owned(), number(wake_shard(job.job_guid)));
    }
    Ok(item)
}

/// The attribute of the trace of a job. It is set when the job is created, and is not part of [`Job`].
const TRACE: &str = "traceId";

/// Adds the trace of a job that is created now to its row.
pub fn add_trace(item: &mut Item, job: &Job) {
    let trace = trace::of_new_job(job.job_guid);
    item.insert(TRACE.to_owned(), text(&trace));
    learn(job, Some(trace));
}

/// Decodes a job row.
///
/// # Errors
/// `Invalid` if it is not a job row.
pub fn job_of(doing: &'static str, item: Item) -> Result<Job, PortError> {
    let trace = item.get(TRACE).and_then(|trace| trace.as_s().ok()).and_then(|trace| TraceId::of_digits(trace));
    let Stored(job) = from_item(doing, item)?;
    learn(&job, trace);
    Ok(job)
}

/// Decodes a job row from a stream record.
///
/// # Errors
/// `Invalid` if it is not a job row.
pub fn job_of_image(doing: &'static str, image: serde_dynamo::Item) -> Result<Job, PortError> {
    let trace = match image.get(TRACE) {
        Some(serde_dynamo::AttributeValue::S(trace)) => TraceId::of_digits(trace),
        _ => None,
    };
    let Stored(job) = serde_dynamo::from_item(image).map_err(|error| PortError::invalid(doing, error))?;
    learn(&job, trace);
    Ok(job)
}

/// Remembers the trace of a job.
fn learn(job: &Job, trace: Option<TraceId>) {
    trace::learn(job.job_guid, trace.unwrap_or_else(|| TraceId::of_job(job.job_guid)));
}

/// The stored form of a status.
pub fn status_value(status: Status) -> AttributeValue {
    text(status.as_str())
}

/// The stored form of a stop.
///
/// # Errors
/// None in practice: every field of a stop can be written as JSON.
pub fn stop_text(stop: &Stop) -> Result<String, serde_json::Error> {
    serde_json::to_string(stop)
}

/// The stored form of where the results are.
///
/// # Errors
/// None in practice.
pub fn results_text(results: &Results) -> Result<String, serde_json::Error> {
    serde_json::to_string(results)
}

/// The shard of a job in the wake index.
pub fn wake_shard(job: JobGuid) -> u32 {
    let shard = xxh3_64(job.0.as_bytes()) % u64::from(WAKE_SHARDS);
    u32::try_from(shard).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_core::model::job::StopCode;
    use rowmill_core::model::warnings;
    use rowmill_core::text::Position;
    use serde_json::json;
    use uuid::Uuid;

    fn job() -> Job {
        let at = |ms| Timestamp::from_millisecond(ms).unwrap();
        Job {
            job_guid: JobGuid(Uuid::from_u128(7)),
            owner: Owner("me".into()),
            job_type: "import".into(),
            file_guid: Some(FileGuid(Uuid::from_u128(8))),
            is_stored: true,
            data_start: 9,
            data_bytes: u64::MAX,
            warnings: vec![warnings::trailing_bytes(7)],
            max_concurrency: Some(3),
            priority: Priority::High,
            tallies_ahead: Some(2),
            metadata: json!({"tag": ["a", 1.5]}).as_object().cloned(),
            status: Status::Running,
            outcome: Some(JobOutcome::Partial),
            attempt: 2,
            split: SplitState {
                tallies: 3,
                dispatched: 2,
                cursor: Position { offset: 99, row: 4 },
                done: true,
                at_end: true,
            },
            lease: Some(Lease { holder: RunId::from_bytes([1; 7]), until: at(5000) }),
            stop: Some(Stop { code: StopCode::Cancelled, message: "m".into(), row: None, offset: Some(3), at: at(12) }),
            counts: Some(Counts { succeeded: 1, failed: 2, skipped: 3 }),
            usage: Usage::of_transaction(5).with_sends(6),
            completions: 1,
            redrive: Some(Redrive {
                by: RunId::from_bytes([2; 7]),
                before: Counts { succeeded: 4, failed: 5, skipped: 6 },
                base: 1,
                unprocessed_from: Some(Position { offset: 98, row: 3 }),
                corrected: Some("results/corrected".into()),
            }),
            results: Some(Results { attempt: 1, manifest: RunId::from_bytes([4; 7]) }),
            composing: Some(RunId::from_bytes([5; 7])),
            recoveries: 7,
            paused_from: Some(Status::Waiting),
            paused_at: Some(at(10)),
            breaker_pause: Some(BreakerPause::after("unavailable", "it answered 503", at(9))),
            pauses: 8,
            resend_from: Some(9),
            created_at: at(1),
            started_at: Some(at(2)),
            first_chunk_at: Some(at(8)),
            moved_at: at(3),
            deadline_at: at(4),
            finished_at: Some(at(5)),
            wake_at: Some(at(6)),
            expires_at: Some(at(7000)),
            revision: 11,
        }
    }

    #[test]
    fn a_job_reads_back_as_it_was_written() {
        let full = job();
        assert_eq!(job_of("", job_item("", &full).unwrap()).unwrap(), full);
        let bare = Job {
            file_guid: None,
            is_stored: false,
            warnings: Vec::new(),
            results: None,
            composing: None,
            max_concurrency: None,
            priority: Priority::Normal,
            tallies_ahead: None,
            metadata: None,
            outcome: None,
            lease: None,
            stop: None,
            counts: None,
            usage: Usage::NONE,
            redrive: None,
            recoveries: 0,
            paused_from: None,
            paused_at: None,
            breaker_pause: None,
            pauses: 0,
            resend_from: None,
            started_at: None,
            first_chunk_at: None,
            finished_at: None,
            wake_at: None,
            expires_at: None,
            ..full
        };
        let item = job_item("", &bare).unwrap();
        assert!(!item.contains_key("recoveries"), "no recoveries, no attribute");
        assert!(!item.contains_key("wakeShard"), "an ended job is not in the wake index");
        assert_eq!(job_of("", item).unwrap(), bare);
    }

    #[test]
    fn an_attribute_of_a_newer_version_is_ignored() {
        let mut item = job_item("", &job()).unwrap();
        item.insert("madeUp".into(), number(1));
        assert!(job_of("", item).is_ok());
    }

    #[test]
    fn a_row_that_is_not_a_job_is_invalid() {
        let mut item = job_item("", &job()).unwrap();
        item.remove("status");
        assert!(matches!(job_of("reading the job", item), Err(PortError::Invalid { .. })));
    }
}
