//! The events for other systems: the start and the end of each attempt of a job.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::ids::{FileGuid, JobGuid, Owner};
use crate::model::job::states::{JobOutcome, Status};
use crate::model::job::{End, Job, Stop, StopCode};

/// The version of the format of the events. It is increased with every change that a consumer could notice.
pub const SCHEMA_VERSION: u32 = 1;

pub const SOURCE: &str = "rowmill";

/// The start or the end of an attempt. It contains nothing from the file.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobEvent {
    pub schema_version: u32,
    /// `jobGuid/attempt/status`. An event may arrive more than once, each time with this id.
    pub event_id: String,
    pub job_guid: JobGuid,
    pub job_type: String,
    pub owner: Owner,
    /// The upload that the job processes, if any.
    pub file_guid: Option<FileGuid>,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// `running` at the start of the attempt, or the terminal status at its end.
    pub status: Status,
    /// The outcome of a completed job.
    pub outcome: Option<JobOutcome>,
    pub at: Timestamp,
    pub created_at: Timestamp,
    /// The counts of the whole job over all attempts, at the end of an attempt.
    #[serde(flatten)]
    pub items: Option<EventItems>,
    pub error: Option<EventError>,
    pub metadata: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventItems {
    /// All items, without those that were never dispatched.
    pub item_count: u64,
    pub items_succeeded: u64,
    pub items_failed: u64,
    /// Items not processed because the job was stopped.
    pub items_skipped: u64,
}

/// Why an attempt failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct EventError {
    pub code: StopCode,
    pub message: String,
    pub row: Option<u64>,
    pub offset: Option<u64>,
}

impl From<&Stop> for EventError {
    fn from(stop: &Stop) -> Self {
        let Stop { code, message, row, offset, .. } = stop.clone();
        Self { code, message, row, offset }
    }
}

impl JobEvent {
    /// The event of a change of the job row, if that is of interest to anybody outside.
    pub fn between(before: Option<&Job>, after: &Job) -> Option<Self> {
        let attempt_before = before.map(|job| job.attempt);
        let of_attempt = before.filter(|before| before.attempt == after.attempt);
        match after.status() {
            // Taken up, or redriven: the next attempt runs from its first write on.
            Status::Running if of_attempt.is_none_or(|before| before.status() == Status::Waiting) => {
                // An attempt never comes after a later one; rows that were put back from a backup may look like it.
                attempt_before.is_none_or(|before| before <= after.attempt).then(|| Self::of(after, after.moved_at))
            }
            _ if of_attempt.is_some_and(Job::is_ended) => None,
            _ => after.end().map(|end| Self::of(after, end.finished_at)),
        }
    }

    /// The words that rules match on: the event's detail type.
    pub const fn detail_type(&self) -> &'static str {
        if self.status.is_terminal() { "Rowmill Job Ended" } else { "Rowmill Job Started" }
    }

    fn of(job: &Job, at: Timestamp) -> Self {
        let (status, end) = (job.status(), job.end());
        Self {
            schema_version: SCHEMA_VERSION,
            event_id: format!("{}/{}/{}", job.job_guid, job.attempt, status.as_str()),
            job_guid: job.job_guid,
            job_type: job.job_type.clone(),
            owner: job.owner.clone(),
            file_guid: job.file_guid,
            attempt: job.attempt,
            status,
            outcome: end.and_then(|end| end.outcome.clone().ok()),
            at,
            created_at: job.created_at,
            items: end.map(|&End { counts, .. }| EventItems {
                item_count: counts.sum(),
                items_succeeded: counts.succeeded,
                items_failed: counts.failed,
                items_skipped: counts.skipped,
            }),
            error: end.and_then(|_| job.error()).map(EventError::from),
            metadata: job.metadata.clone(),
        }
    }
}
