//! What other systems are told of a job: that an attempt has begun, and that it has ended.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::ids::{FileGuid, JobGuid, Owner};
use crate::model::job::{Job, JobError};
use crate::model::states::{JobOutcome, Status};

/// The version of the events' form. It goes up with every change that a careful reader could notice.
pub const SCHEMA_VERSION: u32 = 1;

/// Who the events come from.
pub const SOURCE: &str = "rowmill";

/// An event in the life of a job. It holds nothing out of the file.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobEvent {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// `jobGuid/attempt/status`. An event may arrive more than once, each time with this name.
    pub event_id: String,
    /// The job.
    pub job_guid: JobGuid,
    /// The name of its job type.
    pub job_type: String,
    /// Whose job it is.
    pub owner: Owner,
    /// The upload it runs over, if it runs over one.
    pub file_guid: Option<FileGuid>,
    /// Which attempt, counted from 1.
    pub attempt: u32,
    /// `running` where the attempt has begun, or how it has ended.
    pub status: Status,
    /// How a completed job went.
    pub outcome: Option<JobOutcome>,
    /// When it happened.
    pub at: Timestamp,
    /// When the job was created.
    pub created_at: Timestamp,
    /// The counts of the whole job, all its attempts together, where the attempt has ended.
    #[serde(flatten)]
    pub items: Option<EventItems>,
    /// Why a failed job did.
    pub error: Option<JobError>,
    /// What the client wants to find again.
    pub metadata: Option<Map<String, Value>>,
}

/// How the items of a job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventItems {
    /// All items; what was never dispatched is not among them.
    pub item_count: u64,
    /// Items processed well.
    pub items_succeeded: u64,
    /// Items that failed.
    pub items_failed: u64,
    /// Items not processed because the job was stopped.
    pub items_skipped: u64,
}

impl JobEvent {
    /// What happened when the job's row went from one state to the next, if that is of interest to anybody outside.
    pub fn between(before: Option<&Job>, after: &Job) -> Option<Self> {
        let attempt_before = before.map(|job| job.attempt);
        let of_attempt = before.filter(|before| before.attempt == after.attempt);
        match after.status {
            // Taken up, or redriven: the next attempt runs from its first write on.
            Status::Running if of_attempt.is_none_or(|before| before.status == Status::Waiting) => {
                // An attempt never comes after a later one; rows that were put back from a backup may look like it.
                attempt_before.is_none_or(|before| before <= after.attempt).then(|| Self::of(after, after.moved_at))
            }
            ended if ended.is_terminal() && of_attempt.is_none_or(|before| !before.status.is_terminal()) => {
                Some(Self::of(after, after.finished_at.unwrap_or(after.moved_at)))
            }
            _ => None,
        }
    }

    /// The words that rules match on: the event's detail type.
    pub const fn detail_type(&self) -> &'static str {
        if self.status.is_terminal() { "Rowmill Job Ended" } else { "Rowmill Job Started" }
    }

    fn of(job: &Job, at: Timestamp) -> Self {
        let counts = job.counts.filter(|_| job.status.is_terminal());
        Self {
            schema_version: SCHEMA_VERSION,
            event_id: format!("{}/{}/{}", job.job_guid, job.attempt, job.status.as_str()),
            job_guid: job.job_guid,
            job_type: job.job_type.clone(),
            owner: job.owner.clone(),
            file_guid: job.file_guid,
            attempt: job.attempt,
            status: job.status,
            outcome: job.outcome,
            at,
            created_at: job.created_at,
            items: counts.map(|counts| EventItems {
                item_count: counts.sum(),
                items_succeeded: counts.succeeded,
                items_failed: counts.failed,
                items_skipped: counts.skipped,
            }),
            error: (job.status == Status::Failed).then(|| job.error()).flatten(),
            metadata: job.metadata.clone(),
        }
    }
}
