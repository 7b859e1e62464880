use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::BoxError;
use crate::model::ids::JobGuid;
use crate::ports::processor::Item;
use crate::text::Record;

/// Code outside of Rowmill that processes items: a function in any language, a web service.
#[async_trait]
pub trait Target: Send + Sync {
    /// Sends the items, and answers with the bytes that came back: at most [`ANSWER_MAX_BYTES`].
    ///
    /// # Errors
    /// See [`TargetError`].
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError>;
}

/// The most bytes of JSON that a target is sent at once. Lambda takes 6 MB.
pub const REQUEST_MAX_BYTES: usize = 6_000_000;

/// The most bytes of JSON that a target may answer with: Lambda's limit of 6 MB.
pub const ANSWER_MAX_BYTES: usize = 6 * 1024 * 1024;

/// Items for a target. As JSON it is what the target is sent:
///
/// ```json
/// {"jobGuid": "…", "jobType": "geocode", "params": {…},
///  "items": [{"itemIdentifier": "jobGuid/row", "row": 7, "record": {"street": "…", "town": "…"}}]}
/// ```
#[derive(Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetRequest<'a> {
    /// The job the items are processed for.
    pub job_guid: JobGuid,
    /// Its type: the name that the target is configured under.
    pub job_type: &'a str,
    /// What the client gave the job.
    pub params: &'a Map<String, Value>,
    /// The items.
    pub items: Vec<TargetItem<'a>>,
}

/// One item for a target.
#[derive(Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetItem<'a> {
    /// The same text every time this item is processed for this job; by it the answer names the item.
    pub item_identifier: String,
    /// Its number in the file, the first one being 1.
    pub row: u64,
    /// What it holds.
    pub record: RecordObject<'a>,
}

/// A record as a JSON object: the cells of a CSV record are strings under the names of their columns.
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

/// Why a call has no answer, by what the caller does about it. What is told goes to the user who runs the job: it names
/// what happened and quotes neither items nor secrets.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// There is no answer: it cannot be reached, takes too long, or broke off. The items are tried again later.
    #[error("the target does not answer: {told}")]
    Unreachable {
        /// What happened.
        told: Cow<'static, str>,
        /// The cause, if it is an error of its own.
        #[source]
        source: Option<BoxError>,
    },
    /// It says that it cannot answer now. The items are tried again later.
    #[error("the target is busy: {told}")]
    Busy {
        /// What happened.
        told: Cow<'static, str>,
        /// After what time it wants to be asked again, if it says so.
        retry_after: Option<Duration>,
    },
    /// It was reached and failed on the items as a whole. One of them may be the reason, or something of its own.
    #[error("the target failed: {told}")]
    Failed {
        /// What happened.
        told: Cow<'static, str>,
    },
    /// It does not take this call, and will not later.
    #[error("the target refuses the call: {told}")]
    Refused {
        /// What happened, and what to do.
        told: Cow<'static, str>,
    },
    /// What it answered is not to be understood.
    #[error("the target's answer is no good: {told}")]
    BadAnswer {
        /// What is wrong with it.
        told: Cow<'static, str>,
    },
}

impl TargetError {
    /// No answer, for this reason alone.
    pub fn silent(told: impl Into<Cow<'static, str>>) -> Self {
        Self::Unreachable { told: told.into(), source: None }
    }

    /// No answer, with the error that says so.
    pub fn unreachable(told: impl Into<Cow<'static, str>>, source: impl Into<BoxError>) -> Self {
        Self::Unreachable { told: told.into(), source: Some(source.into()) }
    }

    /// No time for an answer.
    pub fn busy(told: impl Into<Cow<'static, str>>, retry_after: Option<Duration>) -> Self {
        Self::Busy { told: told.into(), retry_after }
    }

    /// Reached, and failed.
    pub fn failed(told: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed { told: told.into() }
    }

    /// Not taken, now or later.
    pub fn refused(told: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused { told: told.into() }
    }

    /// Answered, and not to be understood.
    pub fn bad_answer(told: impl Into<Cow<'static, str>>) -> Self {
        Self::BadAnswer { told: told.into() }
    }
}
