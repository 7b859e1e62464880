use jiff::Timestamp;
use rowmill_core::model::breaker::BreakerPause;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner, RunId};
use rowmill_core::model::job::states::{JobOutcome, Phase, Status};
use rowmill_core::model::job::{Awaits, End, Job, Lease, Priority, Redrive, SharedSlots, SplitState, Stop};
use rowmill_core::model::results::Results;
use rowmill_core::model::spec::Tolerance;
use rowmill_core::model::tally::Counts;
use rowmill_core::model::warnings::Warning;
use rowmill_core::ports::{ERASE_SHARD, PortError, WAKE_SHARDS};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use super::attribute;
use crate::adapters::dynamodb::attributes::{Item, number, text, to_item};
use crate::observe::trace::{self, TraceId};

/// The sort key of the job row.
pub const JOB_ROW: &str = "job";

pub fn job_key(job: JobGuid) -> Item {
    Item::from([("jobId".to_owned(), text(job)), ("row".to_owned(), text(JOB_ROW))])
}

/// The job row: one attribute for each field of [`Job`]. [`job_item`] adds the attributes that are no fields of it.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    #[serde(default)]
    data_start: u64,
    data_bytes: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    tolerance: Option<Tolerance>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_concurrency: Option<u32>,
    #[serde(default, skip_serializing_if = "is_normal")]
    priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tallies_ahead: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    metadata: Option<Map<String, Value>>,
    /// Stored as a [`PhaseRow`].
    #[serde(skip)]
    phase: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    awaits: Option<Awaits>,
    attempt: u32,
    #[serde(flatten, with = "attribute::split")]
    split: SplitState,
    #[serde(flatten, with = "attribute::lease")]
    lease: Option<Lease>,
    #[serde(flatten, with = "attribute::usage")]
    usage: Usage,
    completions: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    redrive: Option<Redrive>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undone_by: Option<JobGuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    deleted_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    composing: Option<RunId>,
    #[serde(default, skip_serializing_if = "is_zero")]
    recoveries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    paused_at: Option<Timestamp>,
    #[serde(default, rename = "pauses", skip_serializing_if = "is_zero")]
    epoch: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resend_from: Option<u32>,
    #[serde(default, skip_serializing_if = "is_held")]
    slots: SharedSlots,
    #[serde(with = "attribute::millis")]
    created_at: Timestamp,
    #[serde(default, with = "attribute::millis")]
    attempt_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    first_chunk_at: Option<Timestamp>,
    #[serde(with = "attribute::millis")]
    moved_at: Timestamp,
    #[serde(with = "attribute::millis")]
    deadline_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    start_by: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    wake_at: Option<Timestamp>,
    revision: u64,
}

fn is_held(slots: &SharedSlots) -> bool {
    *slots == SharedSlots::Held
}

/// The attributes that the phase is stored as. Filters, indexes and the stream read them, so each is there on its own.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PhaseRow {
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    stop: Option<Stop>,
    /// The status in which it was paused, while it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused_from: Option<Status>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    breaker_pause: Option<BreakerPause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<JobOutcome>,
    /// Three attributes, or none.
    #[serde(flatten)]
    counts: Option<Counts>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::json")]
    results: Option<Results>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::optional_millis")]
    finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "attribute::expiry")]
    expires_at: Option<Timestamp>,
}

impl PhaseRow {
    fn of(job: &Job) -> Self {
        let (status, end) = (job.status(), job.end());
        let unpaused = if job.started_at.is_none() { Status::Waiting } else { Status::Running };
        Self {
            status,
            stop: job.stopped_by().cloned(),
            paused_from: job.is_paused().then_some(unpaused),
            breaker_pause: job.breaker_pause().cloned(),
            outcome: end.and_then(|end| end.outcome.clone().ok()),
            counts: end.map(|end| end.counts),
            results: end.and_then(|end| end.results.clone()),
            finished_at: end.map(|end| end.finished_at),
            expires_at: end.map(|end| end.expires_at),
        }
    }

    /// The phase, if no attribute of it is missing.
    fn phase(&self) -> Option<Phase> {
        let stop = self.stop.clone();
        Some(match self.status {
            Status::Waiting | Status::Running | Status::Cancelling => stop.map_or(Phase::Runnable, Phase::Stopping),
            Status::Paused => Phase::Paused(self.breaker_pause.clone()),
            Status::Completed | Status::Failed | Status::Cancelled => Phase::Ended(End {
                outcome: match stop {
                    Some(stop) => Err(stop),
                    None => Ok(self.outcome?),
                },
                counts: self.counts?,
                results: self.results.clone(),
                finished_at: self.finished_at?,
                expires_at: self.expires_at?,
            }),
        })
    }
}

/// A job in the form of its row.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(flatten, with = "JobRow")]
    job: Job,
    #[serde(flatten)]
    phase: PhaseRow,
}

impl Stored {
    /// The job, if the attributes of its phase are exactly those that it is stored with.
    fn job(self) -> Result<Job, String> {
        let phase = self.phase.phase();
        let job = phase.map(|phase| Job { phase, ..self.job }).filter(|job| PhaseRow::of(job) == self.phase);
        job.ok_or_else(|| format!("attributes of the job row contradict each other: {:?}", self.phase))
    }
}

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
    let mut item = to_item(doing, &Stored { job: job.clone(), phase: PhaseRow::of(job) })?;
    item.insert("row".to_owned(), text(JOB_ROW));
    if job.wake_at.is_some() {
        item.insert("wakeShard".to_owned(), number(shard_of(job)));
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

/// Decodes a job row, as [`job_of_image`].
pub fn job_of(doing: &'static str, item: Item) -> Result<Job, PortError> {
    job_of_image(doing, item.into())
}

/// Decodes a job row from a stream record.
///
/// # Errors
/// `Invalid` if it is not a job row, or its attributes contradict each other.
pub fn job_of_image(doing: &'static str, image: serde_dynamo::Item) -> Result<Job, PortError> {
    let trace = match image.get(TRACE) {
        Some(serde_dynamo::AttributeValue::S(trace)) => TraceId::of_digits(trace),
        _ => None,
    };
    let stored: Stored = serde_dynamo::from_item(image).map_err(|error| PortError::invalid(doing, error))?;
    let job = stored.job().map_err(|error| PortError::invalid(doing, error))?;
    learn(&job, trace);
    Ok(job)
}

fn learn(job: &Job, trace: Option<TraceId>) {
    trace::learn(job.job_guid, trace.unwrap_or_else(|| TraceId::of_job(job.job_guid)));
}

fn shard_of(job: &Job) -> u32 {
    if job.is_to_be_erased() { ERASE_SHARD } else { wake_shard(job.job_guid) }
}

pub fn wake_shard(job: JobGuid) -> u32 {
    let shard = xxh3_64(job.0.as_bytes()) % u64::from(WAKE_SHARDS);
    u32::try_from(shard).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_testing::fixtures::{full_job, phases};

    #[test]
    fn a_job_reads_back_as_it_was_written() {
        let full = full_job();
        assert_eq!(job_of("", job_item("", &full).unwrap()).unwrap(), full);
        for (phase, started_at) in
            phases().into_iter().flat_map(|phase| [None, full.started_at].map(|at| (phase.clone(), at)))
        {
            let job = Job { phase, started_at, ..full.clone() };
            assert_eq!(job_of("", job_item("", &job).unwrap()).unwrap(), job);
        }
        let ended = phases().into_iter().find(|phase| matches!(phase, Phase::Ended(_))).unwrap();
        let deleted = Job { phase: ended, deleted_at: Some(full.moved_at), ..full.clone() };
        let item = job_item("", &deleted).unwrap();
        assert_eq!(item["wakeShard"], number(ERASE_SHARD), "the sweep does not look at a deleted job");
        assert_eq!(job_of("", item).unwrap(), deleted);
        let bare = Job {
            phase: Phase::Runnable,
            awaits: None,
            file_guid: None,
            is_stored: false,
            files: None,
            warnings: Vec::new(),
            composing: None,
            tolerance: None,
            max_concurrency: None,
            priority: Priority::Normal,
            tallies_ahead: None,
            metadata: None,
            lease: None,
            usage: Usage::NONE,
            redrive: None,
            undone_by: None,
            keep_seconds: None,
            deleted_at: None,
            recoveries: 0,
            paused_at: None,
            epoch: 0,
            resend_from: None,
            slots: SharedSlots::Held,
            started_at: None,
            first_chunk_at: None,
            wake_at: None,
            ..full
        };
        let item = job_item("", &bare).unwrap();
        assert!(!item.contains_key("recoveries"), "no recoveries, no attribute");
        assert!(!item.contains_key("wakeShard"), "an ended job is not in the wake index");
        assert_eq!(job_of("", item).unwrap(), bare);
    }

    #[test]
    fn an_attribute_of_a_newer_version_is_ignored() {
        let mut item = job_item("", &full_job()).unwrap();
        item.insert("madeUp".into(), number(1));
        assert!(job_of("", item).is_ok());
    }

    #[test]
    fn a_row_that_is_not_a_job_is_invalid() {
        let mut item = job_item("", &full_job()).unwrap();
        item.remove("status");
        assert!(matches!(job_of("reading the job", item), Err(PortError::Invalid { .. })));
    }

    #[test]
    fn a_row_whose_attributes_contradict_each_other_is_invalid() {
        let rows: Vec<_> =
            phases().into_iter().map(|phase| job_item("", &Job { phase, ..full_job() }).unwrap()).collect();
        for (row, other) in rows.iter().flat_map(|row| rows.iter().map(move |other| (row, other))) {
            let mut mixed = row.clone();
            mixed.insert("status".to_owned(), other["status"].clone());
            assert_eq!(job_of("", mixed.clone()).is_ok(), mixed == *row, "{mixed:?}");
        }
        for name in ["outcome", "pausedFrom", "succeeded", "failed", "skipped", "finishedAt", "expiresAt"] {
            let mut with: Vec<_> = rows.iter().filter(|row| row.contains_key(name)).cloned().collect();
            assert!(!with.is_empty(), "{name}");
            for row in &mut with {
                row.remove(name);
                assert!(matches!(job_of("", row.clone()), Err(PortError::Invalid { .. })), "{name}");
            }
        }
    }
}
