//! Job types: how each item is processed.
//!
//! A job type is a [`JobType`], built once per process. For each job it makes an [`ItemProcessor`] from the job's params.
//! The [guide](crate::guide) tells how to write one.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};

use crate::model::ids::JobGuid;
use crate::model::spec::{OutputFile, Spec};
use crate::text::Record;

/// A kind of job.
#[async_trait]
pub trait JobType: Send + Sync {
    /// Its name: `jobType` in the API.
    fn name(&self) -> &str;

    /// The names of its params, besides those that tell how to read the file. A job with any other param is rejected, so that
    /// a misspelled param is not ignored. None by default.
    fn params(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it accepts any param, because only the target knows them. No by default.
    fn takes_any_params(&self) -> bool {
        false
    }

    /// Where its items come from. The upload by default.
    fn input(&self) -> InputKind {
        InputKind::File
    }

    /// Makes the processor of a job's items. Called when a job is created, to reject bad params at once, and once in each
    /// process that works on the job. So this is the place to compile the params, such as a schema.
    ///
    /// # Errors
    /// If the params are invalid for this type and file.
    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError>;
}

/// Where the items of a job come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputKind {
    /// An upload: each item is a record of the file.
    File,
    /// A dataset of the records table, named by the param `dataset`: each item is one of its records, as a JSON object
    /// `{"key": "…", "fields": {…}}`.
    Dataset,
}

/// Processes the items of one job.
#[async_trait]
pub trait ItemProcessor: Send + Sync {
    /// Processes one item. Effects are at least once: an item may be processed again after a crash, with the same
    /// [`Item::idempotency_key`].
    ///
    /// # Errors
    /// After a permanent error the item counts as failed. After a transient error it is tried again.
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError>;

    /// Processes a single item of a chunk that failed at every delivery, for so long that an outage is unlikely. Calls
    /// [`process`](Self::process) by default.
    ///
    /// # Errors
    /// As `process`. An error that only the item can have caused should be permanent here.
    async fn process_alone(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.process(item).await
    }

    /// Predicts the result of [`process`](Self::process) without its effects, for jobs with `dryRun`. By default every
    /// well-formed item succeeds.
    ///
    /// # Errors
    /// As `process`, as far as errors can be predicted.
    async fn dry_run(&self, _item: &Item) -> Result<ItemOutcome, ItemError> {
        Ok(ItemOutcome::Succeeded)
    }

    /// The file that is composed of the outputs of its items, if any. Called once, when the job is created.
    fn output(&self) -> Option<OutputFile> {
        None
    }

    /// The maximum number of items processed at the same time. 1 by default.
    fn concurrency(&self) -> usize {
        1
    }

    /// The number of items in a batch. [`concurrency`](Self::concurrency) by default. Between two batches a run checks its time
    /// limit and whether the job was stopped. A batch that is not finished at the time limit is repeated from its start. So
    /// use small batches for slow items, and big ones for items that take microseconds.
    fn batch_items(&self) -> usize {
        self.concurrency().max(1)
    }

    /// Processes a batch. Returns one result per item, in the order of the items. Override it if many items at once are
    /// cheaper than one by one.
    async fn process_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let runs: Vec<_> = items.iter().map(|item| self.process(item)).collect();
        stream::iter(runs).buffered(self.concurrency().max(1)).collect().await
    }
}

/// One record of the file, well-formed.
#[derive(Clone, Debug)]
pub struct Item {
    /// The job.
    pub job_guid: JobGuid,
    /// Its 1-based number in the file, header not counted.
    pub row: u64,
    /// Its content.
    pub record: Record,
}

impl Item {
    /// The idempotency key of the item, the same at every try: `jobGuid/row`.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.job_guid, self.row)
    }
}

/// The result of an item that did not fail.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ItemOutcome {
    /// It was processed.
    Succeeded,
    /// A later item has replaced it. Counts as succeeded.
    Superseded,
    /// It was processed, and this is its part of the job's [`OutputFile`]: one CSV record or one line, without line end.
    Output(String),
}

/// Why an item failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} ({code})")]
pub struct ItemError {
    /// The error code for programs: a short `snake_case` word.
    pub code: String,
    /// The error message for people. Must not contain values of the item.
    pub message: String,
    /// The column that caused the error, if it is one.
    pub column: Option<String>,
    /// Whether a retry can help.
    pub transient: bool,
}

impl ItemError {
    /// The item is bad: it counts as failed and is not tried again.
    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), column: None, transient: false }
    }

    /// Something that the item needs is temporarily unavailable: it is tried again.
    pub fn transient(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { transient: true, ..Self::permanent(code, message) }
    }

    /// The same error with the column that caused it.
    #[must_use]
    pub fn in_column(self, column: impl Into<String>) -> Self {
        Self { column: Some(column.into()), ..self }
    }
}

/// Invalid params of a job.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ParamsError {
    /// The field of the request, such as `params.key`.
    pub field: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl ParamsError {
    /// This field is invalid.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}
