//! Job types: what is done with each item.
//!
//! A job type is a [`JobType`], built once per process; for each job it makes an [`ItemProcessor`] from the job's params.
//! How to write one is told in the [guide](crate::guide).

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};

use crate::model::ids::JobGuid;
use crate::model::spec::{OutputFile, Spec};
use crate::text::Record;

/// A kind of job.
#[async_trait]
pub trait JobType: Send + Sync {
    /// What clients call it, `jobType` in the API.
    fn name(&self) -> &str;

    /// The names of the params it knows, besides those that say how the file is read. A job with any other is refused, so
    /// that a slip of the pen does not pass for a wish; none by default.
    fn params(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it takes params of any name, because they are not Rowmill's business; no by default.
    fn takes_any_params(&self) -> bool {
        false
    }

    /// Where its items come from; the upload by default.
    fn input(&self) -> InputKind {
        InputKind::File
    }

    /// Makes the processor of a job's items. Called when a job is created, to refuse bad params while the client
    /// listens, and once per process that works on the job; so this is the place to compile what the params hold.
    ///
    /// # Errors
    /// Where the params do not make sense for this type and file.
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

/// What is done with the items of one job.
#[async_trait]
pub trait ItemProcessor: Send + Sync {
    /// Processes one item. Effects are at least once: an item may be processed again after a crash, with the same
    /// [`Item::idempotency_key`].
    ///
    /// # Errors
    /// A permanent error makes the item a failed one; a transient error is tried again.
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError>;

    /// Processes an item by itself whose chunk failed at every delivery, so long that an outage is an unlikely reason; as
    /// [`process`](Self::process) by default.
    ///
    /// # Errors
    /// As `process`. What can be blamed on nothing but the item is better permanent here.
    async fn process_alone(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.process(item).await
    }

    /// Says of one item what [`process`](Self::process) would, without its effects: for jobs with `dryRun`. By default
    /// nothing more is known before it is processed than that the item is well-formed.
    ///
    /// # Errors
    /// As `process`, for what can be told beforehand.
    async fn dry_run(&self, _item: &Item) -> Result<ItemOutcome, ItemError> {
        Ok(ItemOutcome::Succeeded)
    }

    /// The file that the outputs of its items make up, if they make up one. Asked once, when the job is created.
    fn output(&self) -> Option<OutputFile> {
        None
    }

    /// How many items may be processed at once; 1 by default.
    fn concurrency(&self) -> usize {
        1
    }

    /// How many items are handed over at once; [`concurrency`](Self::concurrency) by default. Between two batches a run
    /// looks at its time limit and at whether the job was stopped, and a batch that is not done when time is up is run again
    /// from its start; so a type whose items take long keeps this small, and one whose items take microseconds does not.
    fn batch_items(&self) -> usize {
        self.concurrency().max(1)
    }

    /// Processes a batch: the results in the items' order, one for each. A type that can do better with many items at
    /// once than one by one overrides this.
    async fn process_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let runs: Vec<_> = items.iter().map(|item| self.process(item)).collect();
        stream::iter(runs).buffered(self.concurrency().max(1)).collect().await
    }
}

/// One record of the file, well-formed.
#[derive(Clone, Debug)]
pub struct Item {
    /// The job it is processed for.
    pub job_guid: JobGuid,
    /// Its 1-based number in the file, header not counted.
    pub row: u64,
    /// What it holds.
    pub record: Record,
}

impl Item {
    /// The same text every time this item is processed for this job: `jobGuid/row`.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.job_guid, self.row)
    }
}

/// How an item ended well.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ItemOutcome {
    /// It was processed.
    Succeeded,
    /// There was nothing left to do: a later item has taken its place. Counted as succeeded.
    Superseded,
    /// It was processed, and this is its piece of the job's [`OutputFile`]: one CSV record or one line, without its
    /// line end.
    Output(String),
}

/// Why an item did not end well.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} ({code})")]
pub struct ItemError {
    /// What happened, for a program: a short `snake_case` word.
    pub code: String,
    /// What happened, for a person. Must not quote what the item holds.
    pub message: String,
    /// The column it happened in, if it is one.
    pub column: Option<String>,
    /// Whether trying again can help.
    pub transient: bool,
}

impl ItemError {
    /// The item is bad: it is recorded as failed and not tried again.
    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), column: None, transient: false }
    }

    /// Something the item needs was not to be had: it is tried again.
    pub fn transient(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { transient: true, ..Self::permanent(code, message) }
    }

    /// The same error, said of a column.
    #[must_use]
    pub fn in_column(self, column: impl Into<String>) -> Self {
        Self { column: Some(column.into()), ..self }
    }
}

/// Params that a job type cannot work with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ParamsError {
    /// Which field of the request, such as `params.key`.
    pub field: String,
    /// What is wrong with it and what to do.
    pub message: String,
}

impl ParamsError {
    /// This field cannot be worked with.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}
