use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::BoxError;
use crate::model::ids::{JobGuid, RunId};
use crate::model::task::{TaskId, TaskTerms};
use crate::ports::processor::Item;
use crate::text::Record;

/// Code outside of Rowmill that processes items: a Lambda function in any language, or a web service.
#[async_trait]
pub trait Target: Send + Sync {
    /// Sends the items and returns the bytes of the answer: at most [`ANSWER_MAX_BYTES`].
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError>;
}

/// Maximum size of a request to a target, in bytes of JSON: Lambda accepts 6 MB.
pub const REQUEST_MAX_BYTES: usize = 6_000_000;

/// Maximum size of an answer of a target, in bytes of JSON: Lambda's limit of 6 MB.
pub const ANSWER_MAX_BYTES: usize = 6 * 1024 * 1024;

/// A request to a target. The target receives it as JSON:
///
/// ```json
/// {"jobGuid": "…", "jobType": "geocode", "params": {…},
///  "items": [{"itemIdentifier": "jobGuid/row", "row": 7, "record": {"street": "…", "town": "…"}}]}
/// ```
#[derive(Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetRequest<'a> {
    pub job_guid: JobGuid,
    /// The job type: the name under which the target is configured.
    pub job_type: &'a str,
    /// The job's params, as the client sent them.
    pub params: &'a Map<String, Value>,
    pub items: Vec<TargetItem<'a>>,
    /// If the target may answer later: the task by which it does.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub task: Option<TargetTask>,
    /// If earlier calls were dropped because their job has stopped. Then there are no items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<TargetCancel<'a>>,
}

/// The items whose calls were dropped.
#[derive(Clone, Copy, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetCancel<'a> {
    /// The attempt of the job that has stopped. A redrive is the next one, and may call with the items again.
    pub attempt: u32,
    pub item_identifiers: &'a [String],
}

impl<'a> TargetRequest<'a> {
    /// A request with these items.
    pub const fn of(
        job_guid: JobGuid,
        job_type: &'a str,
        params: &'a Map<String, Value>,
        items: Vec<TargetItem<'a>>,
    ) -> Self {
        Self { job_guid, job_type, params, items, task: None, cancel: None }
    }
}

/// The fields of a task that a service gets with its items: those of a lease, and where to beat and to report.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetTask {
    pub task_id: String,
    pub token: RunId,
    pub beat_seconds: u64,
    pub stop_after_seconds: u64,
    pub links: TaskLinks,
}

/// Paths of the API.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TaskLinks {
    pub beat: String,
    pub finish: String,
    pub products: String,
    pub release: String,
}

impl TargetTask {
    pub fn of(id: TaskId, token: RunId, terms: &TaskTerms) -> Self {
        let link = |end| format!("/api/tasks/{id}/{end}");
        Self {
            task_id: id.to_string(),
            token,
            beat_seconds: terms.beat.as_secs(),
            stop_after_seconds: terms.patience().as_secs(),
            links: TaskLinks {
                beat: link("beat"),
                finish: link("finish"),
                products: link("products"),
                release: link("release"),
            },
        }
    }
}

/// The answer of a target that answers later. A web service may also answer `202`, with any body.
pub const ACCEPTED: &[u8] = br#"{"accepted":true}"#;

#[derive(Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetItem<'a> {
    /// Identifies the item in the answer. It is the same every time this item is processed for this job.
    pub item_identifier: String,
    /// Its 1-based number in the file.
    pub row: u64,
    pub record: RecordObject<'a>,
}

/// A record as a JSON object. For a CSV record, the column names are the keys and the cells are strings.
#[derive(Clone, Copy)]
pub struct RecordObject<'a>(pub &'a Record);

impl Serialize for RecordObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Record::Cells(cells) => serializer.collect_map(cells.iter()),
            Record::Json(value) => value.serialize(serializer),
        }
    }
}

impl<'a> From<&'a Item> for TargetItem<'a> {
    fn from(item: &'a Item) -> Self {
        Self { item_identifier: item.idempotency_key(), row: item.row, record: RecordObject(&item.record) }
    }
}

/// Why a call failed, classified by what the caller does about it.
///
/// `detail` is shown to the user who runs the job. It says what happened and quotes neither items nor secrets.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No answer: the target cannot be reached, timed out, or closed the connection. The items are retried later.
    #[error("the target does not answer: {detail}")]
    Unreachable {
        detail: Cow<'static, str>,
        /// False if the target has certainly not got the call.
        may_have_it: bool,
        #[source]
        source: Option<BoxError>,
    },
    /// The target says that it is overloaded or unavailable. The items are retried later.
    #[error("the target is busy: {detail}")]
    Busy {
        detail: Cow<'static, str>,
        /// The delay before the next call, if the target asked for one (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// The target ran and failed the call as a whole. The cause may be one of the items or the target itself.
    #[error("the target failed: {detail}")]
    Failed { detail: Cow<'static, str> },
    /// The target refuses this call permanently.
    #[error("the target refuses the call: {detail}")]
    Refused {
        /// The event, and the remedy.
        detail: Cow<'static, str>,
    },
    #[error("the target's answer is invalid: {detail}")]
    BadAnswer { detail: Cow<'static, str> },
}

impl TargetError {
    /// [`Unreachable`](Self::Unreachable), after a call that may have arrived.
    pub fn no_answer(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Unreachable { detail: detail.into(), may_have_it: true, source: None }
    }

    /// [`Unreachable`](Self::Unreachable) without a call.
    pub fn not_called(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Unreachable { detail: detail.into(), may_have_it: false, source: None }
    }

    /// [`Unreachable`](Self::Unreachable) with its underlying error.
    pub fn unreachable(detail: impl Into<Cow<'static, str>>, may_have_it: bool, source: impl Into<BoxError>) -> Self {
        Self::Unreachable { detail: detail.into(), may_have_it, source: Some(source.into()) }
    }

    pub fn busy(detail: impl Into<Cow<'static, str>>, retry_after: Option<Duration>) -> Self {
        Self::Busy { detail: detail.into(), retry_after }
    }

    pub fn failed(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed { detail: detail.into() }
    }

    pub fn refused(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused { detail: detail.into() }
    }

    pub fn bad_answer(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::BadAnswer { detail: detail.into() }
    }
}
