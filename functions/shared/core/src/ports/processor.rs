//! Job types: the code that processes items.
//!
//! A [`JobType`] is built once per process. For each job it makes an [`ItemProcessor`] from the job's params. The
//! [guide](crate::guide) explains how to write one.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};

pub use super::item::{Item, ItemError, ItemOutcome};
use super::item_watch::AtItem;
use super::target::TargetTask;
use crate::model::spec::{OutputFile, Spec};
use crate::model::task::TaskTerms;

const FAST_BATCH_ITEMS: usize = 256;

#[async_trait]
pub trait JobType: Send + Sync {
    /// The name of the type: `jobType` in the API.
    fn name(&self) -> &str;

    /// The names of the params that this type knows, except those that say how the file is read. A job with an unknown
    /// param is rejected, so that a misspelled name is not ignored. Default: none.
    fn params(&self) -> &'static [&'static str] {
        &[]
    }

    /// True if params of any name are accepted, because Rowmill does not interpret them. Default: no.
    fn takes_any_params(&self) -> bool {
        false
    }

    /// Where the items come from. Default: a file.
    fn input(&self) -> InputKind {
        InputKind::File
    }

    /// How workers outside of the stack process its items, or a service that answers later, if they do. Default: they do
    /// not.
    fn tasks(&self) -> Option<TaskTerms> {
        None
    }

    /// Makes the processor for a job's items.
    ///
    /// It is called when a job is created, so that bad params are rejected in the response to the client; also before
    /// the file is uploaded, with a head without columns, as an empty file has. It is called again once in each process
    /// that works on the job. So this is the place to compile schemas and templates from the params.
    ///
    /// # Errors
    /// If the params are invalid for this type and file.
    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError>;
}

/// Where the items of a job come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputKind {
    /// An uploaded file: each item is a record of the file. Or items in the request: each is a JSON object, as a line
    /// of a file with JSON lines.
    File,
    /// A dataset in the records table, named by the param `dataset`: each item is one record, as the JSON object
    /// `{"key": "…", "fields": {…}}`.
    Dataset,
    /// The keys of records that are stored in a dataset, each with an empty `fields`. No request for a job makes it, but
    /// one to undo a job or to delete a dataset.
    Keys,
    /// Files as they are: the job has one item, which lists them with links. For work that is done once over all of
    /// them, such as a merge.
    Files,
    /// Nothing: the job has one item, an empty JSON object. For work that is done once per job, such as a report.
    None,
}

impl InputKind {
    /// True if a job needs files, or items in their place.
    pub const fn takes_files(self) -> bool {
        matches!(self, Self::File | Self::Files)
    }
}

/// Cost of an item of a job type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CostClass {
    /// Microseconds: it waits for nothing and computes little. Chunks are as large as they can be while all workers
    /// have some.
    Fast,
    /// Milliseconds: it waits for a store.
    StoreBound,
    /// Tens of milliseconds or more: it waits for a service. Chunks are so small that all workers have some.
    Remote,
}

/// Processes the items of one job.
#[async_trait]
pub trait ItemProcessor: Send + Sync {
    /// Processes one item. Processing is at least once: after a crash an item may be processed again, with the same
    /// [`Item::idempotency_key`].
    ///
    /// # Errors
    /// After a permanent error the item counts as failed. After a transient error it is retried.
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError>;

    /// Processes a single item of a chunk that failed at every delivery. The failures lasted so long that an outage is
    /// an unlikely cause. Default: the same as [`process`](Self::process).
    ///
    /// # Errors
    /// As for `process`. Prefer a permanent error here if the item is the only possible cause.
    async fn process_alone(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.process(item).await
    }

    /// Predicts the result of [`process`](Self::process) without its effects, for jobs with `dryRun`. The default
    /// accepts every well-formed item.
    ///
    /// # Errors
    /// As for `process`, as far as errors can be found without the effects.
    async fn dry_run(&self, _item: &Item) -> Result<ItemOutcome, ItemError> {
        Ok(ItemOutcome::Succeeded)
    }

    /// Predicts the results of a batch, as [`dry_run`](Self::dry_run) does for each item.
    async fn dry_run_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let runs: Vec<_> = items.iter().map(|item| AtItem::new(item, self.dry_run(item))).collect();
        stream::iter(runs).buffered(self.concurrency().max(1)).collect().await
    }

    /// Hands the items of a task over to a service that may answer later. Default: they are processed at once.
    async fn hand_over(&self, items: &[Item], _task: TargetTask) -> HandedOver {
        HandedOver::Answered(self.process_batch(items).await)
    }

    /// True if its calls may be dropped when the job stops, and [`cancel`](Self::cancel) tells of it. Default: no.
    fn is_cancellable(&self) -> bool {
        false
    }

    /// Tells that nobody waits for the outcomes of these items any more, because this attempt of their job has stopped.
    /// Default: nobody is told.
    async fn cancel(&self, _attempt: u32, _identifiers: &[String]) {}

    /// The result file that collects the outputs of the items, if there is one. Called once, when the job is created.
    fn output(&self) -> Option<OutputFile> {
        None
    }

    /// Bytes of memory that the processor takes beyond a few times the size of the params: compiled schemas and the
    /// like. An estimate. A process keeps the processors of several jobs, up to a number of bytes. Default: 0.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Maximum number of items processed concurrently. Default: 1.
    fn concurrency(&self) -> usize {
        1
    }

    /// Cost of an item. It decides how many items chunks and batches have. Default: [`CostClass::StoreBound`].
    fn cost(&self) -> CostClass {
        CostClass::StoreBound
    }

    /// Number of items in a batch. Default: 256 [fast](CostClass::Fast) items, or [`concurrency`](Self::concurrency)
    /// others.
    ///
    /// Between two batches a run checks its time limit and whether the job was stopped. A batch that is not finished at
    /// the time limit is repeated from its start. So choose small batches if items take long, and large batches if
    /// items take microseconds.
    fn batch_items(&self) -> usize {
        match self.cost() {
            CostClass::Fast => FAST_BATCH_ITEMS,
            CostClass::StoreBound | CostClass::Remote => self.concurrency().max(1),
        }
    }

    /// Processes a batch and returns one result for each item, in the order of the items. Override this if a whole
    /// batch can be processed more efficiently than single items. If it then works row by row without an await, call
    /// [`begin_item`](crate::ports::begin_item) for each row: a batch that holds its thread for longer than
    /// `ItemTimeoutSeconds`, without an await and without beginning another item, stops its job.
    async fn process_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let runs: Vec<_> = items.iter().map(|item| AtItem::new(item, self.process(item))).collect();
        stream::iter(runs).buffered(self.concurrency().max(1)).collect().await
    }
}

/// What became of items that were handed over.
#[derive(Clone, PartialEq, Debug)]
pub enum HandedOver {
    /// The service has them, and answers later.
    Accepted,
    /// It may have them: there was no answer.
    Unknown(ItemError),
    /// It does not have them: one result for each item, in the order of the items.
    Answered(Vec<Result<ItemOutcome, ItemError>>),
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{field}` {message}")]
pub struct ParamsError {
    /// The field of the request, such as `params.key`.
    pub field: String,
    /// The fault and its remedy: the rest of the sentence that begins with the field's name.
    pub message: String,
}

impl ParamsError {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}
