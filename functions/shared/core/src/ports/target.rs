use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::BoxError;
use crate::model::ids::JobGuid;
use crate::ports::processor::Item;
use crate::text::Record;

/// Code outside of Rowmill that processes items: a function in any language, or a web service.
#[async_trait]
pub trait Target: Send + Sync {
    /// Sends the items and returns the answer: at most [`ANSWER_MAX_BYTES`].
    ///
    /// # Errors
    /// See [`TargetError`].
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError>;
}

/// The maximum size of a request in bytes of JSON. Lambda accepts 6 MB.
pub const REQUEST_MAX_BYTES: usize = 6_000_000;

/// The maximum size of an answer in bytes of JSON: Lambda's limit of 6 MB.
pub const ANSWER_MAX_BYTES: usize = 6 * 1024 * 1024;

/// Items for a target. This is the JSON that the target receives:
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
    /// The job type: the name under which the target is configured.
    pub job_type: &'a str,
    /// The params of the job.
    pub params: &'a Map<String, Value>,
    /// The items.
    pub items: Vec<TargetItem<'a>>,
}

/// One item for a target.
#[derive(Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetItem<'a> {
    /// The identifier of the item, the same at every try. The answer refers to the item by it.
    pub item_identifier: String,
    /// Its number in the file, from 1.
    pub row: u64,
    /// Its content.
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

/// Why a call failed, by what the caller does about it. The user who runs the job sees `told`: it says what happened, and
/// contains neither items nor secrets.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No answer: the target cannot be reached, takes too long, or closes the connection. The items are tried again later.
    #[error("the target does not answer: {told}")]
    Unreachable {
        /// What happened.
        told: Cow<'static, str>,
        /// The underlying error, if there is one.
        #[source]
        source: Option<BoxError>,
    },
    /// The target is overloaded. The items are tried again later.
    #[error("the target is busy: {told}")]
    Busy {
        /// What happened.
        told: Cow<'static, str>,
        /// When to try again, if the target says so (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// The target failed on the whole request. The cause may be one of the items or the target itself.
    #[error("the target failed: {told}")]
    Failed {
        /// What happened.
        told: Cow<'static, str>,
    },
    /// The target refuses the request for good.
    #[error("the target refuses the call: {told}")]
    Refused {
        /// What happened, and what to do.
        told: Cow<'static, str>,
    },
    /// The answer cannot be decoded.
    #[error("the target's answer is no good: {told}")]
    BadAnswer {
        /// What is wrong with the answer.
        told: Cow<'static, str>,
    },
}

impl TargetError {
    /// [`Unreachable`](Self::Unreachable) without an underlying error.
    pub fn silent(told: impl Into<Cow<'static, str>>) -> Self {
        Self::Unreachable { told: told.into(), source: None }
    }

    /// [`Unreachable`](Self::Unreachable) with the underlying error.
    pub fn unreachable(told: impl Into<Cow<'static, str>>, source: impl Into<BoxError>) -> Self {
        Self::Unreachable { told: told.into(), source: Some(source.into()) }
    }

    /// [`Busy`](Self::Busy).
    pub fn busy(told: impl Into<Cow<'static, str>>, retry_after: Option<Duration>) -> Self {
        Self::Busy { told: told.into(), retry_after }
    }

    /// [`Failed`](Self::Failed).
    pub fn failed(told: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed { told: told.into() }
    }

    /// [`Refused`](Self::Refused).
    pub fn refused(told: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused { told: told.into() }
    }

    /// [`BadAnswer`](Self::BadAnswer).
    pub fn bad_answer(told: impl Into<Cow<'static, str>>) -> Self {
        Self::BadAnswer { told: told.into() }
    }
}
