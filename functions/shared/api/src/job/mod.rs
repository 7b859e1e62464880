//! A job as the API shows it: [`JobView::of`] combines its row with its counters, [`JobReader`] reads the jobs of an
//! owner.

mod reader;
mod version;
mod view;

use jiff::Timestamp;
use rowmill_core::model::causes::CauseCount;
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::job::{Priority, StopCode};
use rowmill_core::model::warnings::WarningCode;
use rowmill_core::words::{Open, words};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::cost::JobCost;
use crate::request::Tolerance;
pub use reader::JobReader;

words! {
    /// What a job is doing, in more detail than its status.
    Stage {
        /// Nothing is at work on the job yet: no function has taken it up, or it is split and none of its chunks has
        /// begun.
        Queued = "queued",
        /// The job waits: its file is still being fetched.
        Fetching = "fetching",
        /// The job waits: its files are being listed.
        Listing = "listing",
        /// The job waits for the end of another job.
        After = "after",
        /// The file is being split. The first chunks may be done already.
        Splitting = "splitting",
        /// The file is split. Its items are being processed.
        Processing = "processing",
        /// The job is paused.
        Paused = "paused",
        /// The job was resumed, and waits until the limits of active jobs have room for it again.
        WaitingForSlot = "waiting_for_slot",
        /// All items are accounted for. The results are being composed.
        Composing = "composing",
        /// The job is stopped and is ending.
        Stopping = "stopping",
        /// The job has ended.
        Ended = "ended",
    }
}

words! {
    /// Who has paused a job.
    PausedBy {
        /// Its owner, who also resumes it.
        Owner = "owner",
        /// The breaker of its job type, because the target is down. It resumes the job by itself once the target is
        /// back.
        Breaker = "breaker",
        /// The limits of active jobs, since the job was resumed. The job resumes by itself once they have room for it.
        Limits = "limits",
    }
}

words! {
    /// Why a job is paused, if not by its owner.
    PauseCode {
        /// Too many chunks of the job type ended with transient errors, and so did a chunk of this job.
        TargetDown = "target_down",
        /// The job gave its slots back while it was paused, and none are free.
        NoSlot = "no_slot",
    }
}

/// A job as the API shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// The job's name.
    pub job_guid: JobGuid,
    /// The name of its job type.
    pub job_type: String,
    /// The upload that the job reads; null for a job that reads a dataset.
    pub file_guid: Option<FileGuid>,
    /// How many files the job reads, if it reads many and they are listed.
    #[serde(default)]
    #[schema(required)]
    pub files: Option<u64>,
    /// Its priority.
    #[serde(default = "usual_priority")]
    #[schema(required, value_type = Priority)]
    pub priority: Open<Priority>,
    /// How many of its chunks may be in flight at the same time; null if the stack decides.
    #[serde(default)]
    pub max_concurrency: Option<u32>,
    /// How many failed items it tolerates before it is stopped; null for any number.
    #[serde(default, deserialize_with = "readable")]
    pub tolerance: Option<Tolerance>,
    /// Where the job is in its life.
    pub status: Status,
    /// How a completed job went; null for every other status.
    #[serde(default, deserialize_with = "known")]
    pub outcome: Option<JobOutcome>,
    /// What the job is doing.
    #[schema(value_type = Stage)]
    pub stage: Open<Stage>,
    /// Status and progress in one sentence.
    pub message: String,
    /// How much is done, 0 to 100; 100 only when completed.
    #[schema(maximum = 100)]
    pub percent: u8,
    /// How many items are known so far; final as soon as the file is split.
    pub item_count: u64,
    /// Whether `itemCount` is final.
    pub item_count_final: bool,
    /// How many items are accounted for: the succeeded, failed and skipped ones together.
    pub item_progress: u64,
    /// How many items succeeded.
    pub items_succeeded: u64,
    /// How many items failed.
    pub items_failed: u64,
    /// How many items were not processed because the job was stopped.
    pub items_skipped: u64,
    /// How many items are done in chunks that are not finished. They move `percent`, and are in no other figure yet. Null
    /// if they are not known: in lists, in the first minute, before the file is split, and of more than 100 chunks.
    #[serde(default)]
    #[schema(required)]
    pub items_at_work: Option<u64>,
    /// How many chunks are dispatched and not committed yet. 0 before a splitter takes the job, and after its end.
    #[serde(default)]
    #[schema(required)]
    pub chunks_in_flight: u64,
    /// What the job has used of AWS so far, over all attempts, and its list price. Null if nothing is known: before
    /// anything was counted, and for a job of a version that did not count.
    #[serde(default)]
    #[schema(required)]
    pub cost: Option<JobCost>,
    /// Which attempt this is, counted from 1. A redrive starts the next one.
    #[serde(default = "first_attempt")]
    #[schema(required, minimum = 1)]
    pub attempt: u32,
    /// Tells a newer view of a job from an older one: it never falls, and it grows with the job's progress, status and
    /// attempt. Drop a view with a smaller version than the one you have.
    #[serde(default)]
    #[schema(required, maximum = 9007199254740991i64)]
    pub version: u64,
    /// When the job was created.
    pub created_at: Timestamp,
    /// When a function first took the job up.
    pub started_at: Option<Timestamp>,
    /// When the first chunk of the attempt began; null before.
    pub first_chunk_at: Option<Timestamp>,
    /// When the job last made progress.
    pub heartbeat_at: Timestamp,
    /// When the job is stopped if it has not ended.
    pub deadline_at: Timestamp,
    /// When the job is stopped if none of its items has begun; null if only the deadline bounds its wait.
    pub start_by: Option<Timestamp>,
    /// When the job ended.
    pub finished_at: Option<Timestamp>,
    /// When the job is deleted.
    pub expires_at: Option<Timestamp>,
    /// By whom the job is paused, and why; null if it is not paused.
    pub pause: Option<PauseView>,
    /// Why the job did not complete; null for a job that its owner cancelled.
    pub error: Option<JobError>,
    /// Why items failed, once the job has ended: the ten most frequent causes, the most frequent one first. The
    /// results have up to a hundred, with examples.
    #[serde(default)]
    #[schema(required)]
    pub causes: Vec<CauseCount>,
    /// What the owner should know about the file, although it could be read. None of it makes an item fail by itself.
    #[serde(default)]
    #[schema(required)]
    pub warnings: Vec<JobWarning>,
    /// The job that undoes this one; null if it was not undone.
    #[serde(default)]
    #[schema(required)]
    pub undone_by: Option<JobGuid>,
    /// The part of the file that was never dispatched because the job was stopped. It is not in `itemCount`.
    pub unprocessed: Option<Unprocessed>,
    /// The client's own notes, as given at creation.
    #[schema(value_type = Option<Map<String, Value>>)]
    pub metadata: Option<Map<String, Value>>,
    /// Paths of related resources.
    pub links: JobLinks,
}

const fn first_attempt() -> u32 {
    1
}

/// That of every job of a version without priorities.
const fn usual_priority() -> Open<Priority> {
    Open::Known(Priority::Normal)
}

/// A tolerance that this version cannot read is read as none.
fn readable<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Tolerance>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(value)?).unwrap_or_default())
}

/// A word that this version does not know is read as none.
fn known<'de, D: Deserializer<'de>>(value: D) -> Result<Option<JobOutcome>, D::Error> {
    let word: Option<Open<JobOutcome>> = Option::deserialize(value)?;
    Ok(match word {
        Some(Open::Known(outcome)) => Some(outcome),
        Some(Open::Other(_)) | None => None,
    })
}

/// Why a job did not complete, or is not going to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobError {
    /// What happened, for a program.
    #[schema(value_type = StopCode)]
    pub code: Open<StopCode>,
    /// What happened, for a person.
    #[serde(default)]
    #[schema(required)]
    pub message: String,
    /// The row of the file at which it happened, if there is one.
    pub row: Option<u64>,
    /// The byte of the file at which it happened, if there is one.
    pub offset: Option<u64>,
}

/// By whom a job is paused, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseView {
    /// Who has paused it.
    #[schema(value_type = PausedBy)]
    pub by: Open<PausedBy>,
    /// Why, if not by the owner; null for a pause by the owner.
    pub reason: Option<PauseReason>,
    /// When Rowmill looks next whether the job can continue, if it continues by itself. It may be tried then, or wait
    /// until another job of its type has shown that the target is back, or has freed a slot.
    pub next_probe_at: Option<Timestamp>,
}

/// Why a job is paused, if not by its owner.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseReason {
    /// What happened, for a program.
    #[schema(value_type = PauseCode)]
    pub code: Open<PauseCode>,
    /// For a person: what the target said, which is the error of the run that paused the job; or that there is no slot.
    pub message: String,
    /// Since when the job is paused.
    pub since: Timestamp,
}

/// What the owner of a job should know about its file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobWarning {
    /// What it is about, for a program.
    #[schema(value_type = WarningCode)]
    pub code: Open<WarningCode>,
    /// What was noticed and what to do, for a person.
    #[serde(default)]
    #[schema(required)]
    pub message: String,
}

/// The part of a file that was never dispatched: from here to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unprocessed {
    /// The number of its first row.
    pub from_row: u64,
    /// The byte of the file at which it begins.
    pub from_offset: u64,
}

/// Paths of a job's resources, relative to the API's address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobLinks {
    /// The failed items.
    pub items: String,
    /// The results.
    pub results: String,
    /// The job itself.
    #[serde(rename = "self")]
    pub this: String,
}

impl JobLinks {
    /// The paths of this job.
    pub fn of(job: JobGuid) -> Self {
        Self {
            items: format!("/api/jobs/{job}/items?outcome=failed"),
            results: format!("/api/jobs/{job}/results"),
            this: format!("/api/jobs/{job}"),
        }
    }
}

/// A page of jobs, newest first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobPage {
    /// The jobs of this page.
    pub jobs: Vec<JobView>,
    /// Where the next page begins: send it as `after`. Null on the last page.
    pub next: Option<JobGuid>,
}
