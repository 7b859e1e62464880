//! The API's JSON as this client sees it.
//!
//! Only what is used here is typed; `rest` keeps the other members, so that `--json` shows a job just as the API gave
//! it, members of a later version included.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where a job is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// Accepted, not yet taken up.
    Waiting,
    /// Being worked on.
    Running,
    /// Told to stop by its owner, not yet at rest.
    Cancelling,
    /// Every item is accounted for; the outcome says how.
    Completed,
    /// Ended by an error of the job as a whole.
    Failed,
    /// Ended by its owner.
    Cancelled,
}

impl JobStatus {
    /// Whether nothing will change any more, unless the job is redriven.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The API's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One run of a job type over one upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// The job's name.
    pub job_guid: String,
    /// What is done with each item, `import` for instance.
    pub job_type: String,
    /// Where it is in its life.
    pub status: JobStatus,
    /// 0 to 100, below 100 until terminal.
    #[serde(default)]
    pub percent: u8,
    /// Items found so far; all of them once `item_count_final`.
    #[serde(default)]
    pub item_count: u64,
    /// Whether the whole file has been cut.
    #[serde(default)]
    pub item_count_final: bool,
    /// Items accounted for: succeeded + failed + skipped.
    #[serde(default)]
    pub item_progress: u64,
    /// Items done as asked.
    #[serde(default)]
    pub items_succeeded: u64,
    /// Items that cannot be done, each with a code.
    #[serde(default)]
    pub items_failed: u64,
    /// Items left out because the job was stopped.
    #[serde(default)]
    pub items_skipped: u64,
    /// Passes over its items, the present one included: 1 until it is redriven.
    #[serde(default = "first_attempt")]
    pub attempt: u32,
    /// When it was accepted.
    pub created_at: Option<Timestamp>,
    /// Its latest sign of life.
    pub heartbeat_at: Option<Timestamp>,
    /// When it became terminal.
    pub finished_at: Option<Timestamp>,
    /// Why it failed as a whole.
    pub error: Option<JobFault>,
    /// What of the file was never cut into items, because the job was stopped before.
    pub unprocessed: Option<Unprocessed>,
    /// Every other member.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

fn first_attempt() -> u32 {
    1
}

impl Job {
    /// How long it took from creation to the end, by the API's clock.
    pub fn took(&self) -> Option<Duration> {
        let span = self.finished_at?.duration_since(self.created_at?);
        Duration::try_from(span).ok()
    }
}

/// Why a job failed as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobFault {
    /// A stable code, `unterminated_quote` for instance.
    pub code: String,
    /// The same in words.
    #[serde(default)]
    pub message: String,
    /// Where it happened, and whatever else the API says.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The end of a file that a stopped job did not come to. It is not in the job's item count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unprocessed {
    /// Its first row.
    pub from_row: u64,
    /// Its first byte.
    pub from_offset: u64,
}

/// What `POST /api/jobs` takes.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewJob {
    /// What to do with each item.
    pub job_type: String,
    /// The upload to work on; a type that reads no file has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_guid: Option<String>,
    /// Parameters of the job type.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// Seconds after which the job is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u64>,
    /// How many failures the job bears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// How many of its chunks may be processed at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
}

/// How many failures a job bears before it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tolerance {
    /// So many percent of the items processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// So many items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The percentage is not looked at before that many items are processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_items: Option<u64>,
}

/// What `POST /api/jobs/{jobGuid}/redrive` takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Redrive {
    /// The upload whose rows take the place of failed ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_guid: Option<String>,
    /// Seconds after which the job is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u64>,
}

/// A page of jobs, newest first.
#[derive(Debug, Clone, Deserialize)]
pub struct JobPage {
    /// The jobs of this page.
    pub jobs: Vec<Job>,
    /// Cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// Which jobs to list.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Only jobs of this status.
    pub status: Option<JobStatus>,
    /// Only jobs of this type.
    pub job_type: Option<String>,
}

/// An item that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedItem {
    /// 1-based number in the file, header not counted.
    pub row: u64,
    /// A stable code, `ragged_row` for instance.
    pub code: String,
    /// The same in words.
    #[serde(default)]
    pub message: String,
    /// The column at fault, if one is.
    pub column: Option<String>,
    /// The record as it stands in the file, perhaps shortened.
    pub raw: Option<String>,
}

/// A page of failed items, in the order of the file.
#[derive(Debug, Clone, Deserialize)]
pub struct FailedItemPage {
    /// The items of this page.
    pub items: Vec<FailedItem>,
}

/// A message that a queue gave up on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// What the queue called it.
    pub message_id: String,
    /// What it was about: `items`, `isolated`, `split` or `completion`.
    pub about: String,
    /// The job's attempt it belonged to.
    pub attempt: u32,
    /// The chunk it was about, if it was one.
    pub chunk: Option<DeadChunk>,
    /// When it was recorded.
    pub at: Option<Timestamp>,
    /// Every other member.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The chunk of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadChunk {
    /// The number of its tally.
    pub tally: u32,
    /// Its place in the tally.
    pub index: u32,
    /// The row of its first item.
    pub first_row: u64,
    /// How many items it has.
    pub items: u64,
}

/// All dead letters of a job, oldest first.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterList {
    /// The letters.
    pub dead_letters: Vec<DeadLetter>,
}

/// A file to be stored, as announced to the API.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewUpload {
    /// The file's name, without folders.
    pub file_name: String,
    /// Its media type.
    pub content_type: String,
    /// Its bytes.
    pub size: u64,
    /// SHA-256 of its content in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A stored input file, or the way to store it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upload {
    /// The upload's name.
    pub file_guid: String,
    /// `pending` until the bytes are there, then `ready`.
    pub status: String,
    /// Where to send the whole file. It holds a signature, so it is never printed.
    #[serde(default, skip_serializing)]
    pub upload: Option<SignedRequest>,
    /// Where to send it part by part, by offset. They hold signatures, so they are never printed.
    #[serde(default, skip_serializing)]
    pub parts: Vec<SignedPart>,
    /// Every other member.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A request somebody else has signed: to be sent as it is, with these headers.
#[derive(Clone, PartialEq, Deserialize)]
pub struct SignedRequest {
    /// The HTTP method.
    pub method: String,
    /// The address, which holds the signature.
    pub url: String,
    /// Headers that are part of the signature.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl std::fmt::Debug for SignedRequest {
    /// Whoever holds the address may write the file: it must not reach a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignedRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// One part of a multipart upload.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignedPart {
    /// 1-based number, in the order of the file.
    pub part_number: u32,
    /// How many bytes belong to it.
    pub size: u64,
    /// Where to send them.
    #[serde(flatten)]
    pub request: SignedRequest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_keeps_the_members_this_client_does_not_know() {
        let text = r#"{"jobGuid":"g","jobType":"import","fileGuid":"f","status":"running","percent":37,"stage":"split",
            "error":null,"itemCount":5,"links":{"self":"/x"},"later":1}"#;
        let job: Job = serde_json::from_str(text).unwrap();
        assert_eq!((job.status, job.percent, job.item_count), (JobStatus::Running, 37, 5));
        let back = serde_json::to_value(&job).unwrap();
        assert_eq!(back["later"], 1);
        assert_eq!(back["links"]["self"], "/x");
        assert_eq!(back["fileGuid"], "f");
        assert_eq!((job.attempt, job.unprocessed), (1, None), "an earlier version says neither");
    }

    #[test]
    fn a_signature_is_neither_logged_nor_printed() {
        let text = r#"{"fileGuid":"f","status":"pending","upload":{"method":"PUT","url":"https://s?X-Sig=secret"},
            "parts":[{"partNumber":1,"size":3,"method":"PUT","url":"https://s?X-Sig=secret","headers":{"a":"b"}}]}"#;
        let upload: Upload = serde_json::from_str(text).unwrap();
        assert_eq!(upload.parts[0].request.headers["a"], "b");
        assert!(!format!("{upload:?}").contains("secret"));
        assert!(!serde_json::to_string(&upload).unwrap().contains("secret"));
    }
}
