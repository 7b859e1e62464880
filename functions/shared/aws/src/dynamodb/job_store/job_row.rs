use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner, RunId};
use rowmill_core::model::job::{Job, Lease, SplitState, Stop};
use rowmill_core::model::results::Results;
use rowmill_core::model::states::{JobOutcome, Status};
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::{BoxError, PortError, WAKE_SHARDS};
use rowmill_core::text::Position;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::dynamodb::attributes::{Item, expiry_seconds, from_item, from_millis, from_seconds, text, to_item};

/// The sort key of the job row.
pub const JOB_ROW: &str = "job";

/// The primary key of the job row.
pub fn job_key(job: JobGuid) -> Item {
    Item::from([("jobId".to_owned(), text(job)), ("row".to_owned(), text(JOB_ROW))])
}

/// The job row's attributes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobRow {
    job_id: JobGuid,
    row: String,
    owner: Owner,
    job_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_guid: Option<FileGuid>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_stored: bool,
    #[serde(default)]
    data_start: u64,
    data_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<String>,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<JobOutcome>,
    attempt: u32,
    tallies: u32,
    dispatched: u32,
    cursor_offset: u64,
    cursor_row: u64,
    split_done: bool,
    #[serde(default)]
    at_end: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_holder: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_until: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    succeeded: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    completions: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    redrive: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    composing: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recoveries: Option<u32>,
    created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<i64>,
    moved_at: i64,
    deadline_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_shard: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
}

/// Encodes the job row.
///
/// # Errors
/// `Invalid` if its metadata cannot be written as JSON.
pub fn job_item(doing: &'static str, job: &Job) -> Result<Item, PortError> {
    let metadata = job.metadata.as_ref().map(serde_json::to_string).transpose();
    let stop = job.stop.as_ref().map(stop_text).transpose();
    let redrive = job.redrive.as_ref().map(serde_json::to_string).transpose();
    let row = JobRow {
        job_id: job.job_guid,
        row: JOB_ROW.to_owned(),
        owner: job.owner.clone(),
        job_type: job.job_type.clone(),
        file_guid: job.file_guid,
        is_stored: job.is_stored,
        data_start: job.data_start,
        data_bytes: job.data_bytes,
        metadata: metadata.map_err(|error| PortError::invalid(doing, error))?,
        status: job.status,
        outcome: job.outcome,
        attempt: job.attempt,
        tallies: job.split.tallies,
        dispatched: job.split.dispatched,
        cursor_offset: job.split.cursor.offset,
        cursor_row: job.split.cursor.row,
        split_done: job.split.done,
        at_end: job.split.at_end,
        lease_holder: job.lease.map(|lease| lease.holder),
        lease_until: job.lease.map(|lease| lease.until.as_millisecond()),
        stop: stop.map_err(|error| PortError::invalid(doing, error))?,
        succeeded: job.counts.map(|counts| counts.succeeded),
        failed: job.counts.map(|counts| counts.failed),
        skipped: job.counts.map(|counts| counts.skipped),
        completions: job.completions,
        redrive: redrive.map_err(|error| PortError::invalid(doing, error))?,
        results: job
            .results
            .as_ref()
            .map(results_text)
            .transpose()
            .map_err(|error| PortError::invalid(doing, error))?,
        composing: job.composing,
        recoveries: (job.recoveries > 0).then_some(job.recoveries),
        created_at: job.created_at.as_millisecond(),
        started_at: job.started_at.map(|at| at.as_millisecond()),
        moved_at: job.moved_at.as_millisecond(),
        deadline_at: job.deadline_at.as_millisecond(),
        finished_at: job.finished_at.map(|at| at.as_millisecond()),
        wake_shard: job.wake_at.map(|_| wake_shard(job.job_guid)),
        wake_at: job.wake_at.map(|at| at.as_millisecond()),
        expires_at: job.expires_at.map(expiry_seconds),
    };
    to_item(doing, &row)
}

/// Decodes a job row.
///
/// # Errors
/// `Invalid` if it is not a job row.
pub fn job_of(doing: &'static str, item: Item) -> Result<Job, PortError> {
    let row: JobRow = from_item(doing, item)?;
    job_of_row(row).map_err(|error| PortError::invalid(doing, error))
}

/// Decodes a job row from a stream record.
///
/// # Errors
/// `Invalid` if it is not a job row.
pub fn job_of_image(doing: &'static str, image: serde_dynamo::Item) -> Result<Job, PortError> {
    let row: JobRow = serde_dynamo::from_item(image).map_err(|error| PortError::invalid(doing, error))?;
    job_of_row(row).map_err(|error| PortError::invalid(doing, error))
}

fn job_of_row(row: JobRow) -> Result<Job, BoxError> {
    let lease = row.lease_holder.zip(row.lease_until);
    let counts = row.succeeded.zip(row.failed).zip(row.skipped);
    Ok(Job {
        job_guid: row.job_id,
        owner: row.owner,
        job_type: row.job_type,
        file_guid: row.file_guid,
        is_stored: row.is_stored,
        data_start: row.data_start,
        data_bytes: row.data_bytes,
        metadata: row.metadata.as_deref().map(serde_json::from_str).transpose()?,
        status: row.status,
        outcome: row.outcome,
        attempt: row.attempt,
        split: SplitState {
            tallies: row.tallies,
            dispatched: row.dispatched,
            cursor: Position { offset: row.cursor_offset, row: row.cursor_row },
            done: row.split_done,
            at_end: row.at_end,
        },
        lease: lease.map(|(holder, until)| from_millis(until).map(|until| Lease { holder, until })).transpose()?,
        stop: row.stop.as_deref().map(serde_json::from_str).transpose()?,
        counts: counts.map(|((succeeded, failed), skipped)| Counts { succeeded, failed, skipped }),
        completions: row.completions,
        redrive: row.redrive.as_deref().map(serde_json::from_str).transpose()?,
        results: row.results.as_deref().map(serde_json::from_str).transpose()?,
        composing: row.composing,
        recoveries: row.recoveries.unwrap_or(0),
        created_at: from_millis(row.created_at)?,
        started_at: row.started_at.map(from_millis).transpose()?,
        moved_at: from_millis(row.moved_at)?,
        deadline_at: from_millis(row.deadline_at)?,
        finished_at: row.finished_at.map(from_millis).transpose()?,
        wake_at: row.wake_at.map(from_millis).transpose()?,
        expires_at: row.expires_at.map(from_seconds).transpose()?,
    })
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
    use crate::dynamodb::attributes::number;
    use jiff::Timestamp;
    use rowmill_core::model::job::{Redrive, StopCode};
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
            completions: 1,
            redrive: Some(Redrive {
                by: RunId::from_bytes([2; 7]),
                before: Counts { succeeded: 4, failed: 5, skipped: 6 },
                base: 1,
                unprocessed_from: Some(Position { offset: 98, row: 3 }),
                corrected: Some("results/corrected".into()),
            }),
            results: Some(Results {
                attempt: 1,
                files: RunId::from_bytes([3; 7]),
                manifest: RunId::from_bytes([4; 7]),
            }),
            composing: Some(RunId::from_bytes([5; 7])),
            recoveries: 7,
            created_at: at(1),
            started_at: Some(at(2)),
            moved_at: at(3),
            deadline_at: at(4),
            finished_at: Some(at(5)),
            wake_at: Some(at(6)),
            expires_at: Some(at(7000)),
        }
    }

    #[test]
    fn a_job_reads_back_as_it_was_written() {
        let full = job();
        assert_eq!(job_of("", job_item("", &full).unwrap()).unwrap(), full);
        let bare = Job {
            file_guid: None,
            is_stored: false,
            results: None,
            composing: None,
            metadata: None,
            outcome: None,
            lease: None,
            stop: None,
            counts: None,
            redrive: None,
            recoveries: 0,
            started_at: None,
            finished_at: None,
            wake_at: None,
            expires_at: None,
            ..full
        };
        let item = job_item("", &bare).unwrap();
        assert!(!item.contains_key("recoveries"), "rows from before there were recoveries have none");
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
