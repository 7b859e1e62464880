//! Runs the items of a batch where a processor that does not yield holds up nothing else.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures::stream::{self, StreamExt};

use super::processor::{Item, ItemError, ItemOutcome, ItemProcessor};

/// Runs batches of items.
#[async_trait]
pub trait BatchRunner: Send + Sync {
    /// Runs the batch. If the caller drops the future, nobody waits for the batch any more: it ends at its next await.
    async fn run(&self, batch: ItemBatch) -> BatchEnd;
}

/// How a batch ended.
#[derive(Debug)]
pub enum BatchEnd {
    /// The processor answered.
    Answered {
        /// The items of the batch.
        items: Vec<Item>,
        /// What the processor answered: one result for each item, unless the processor is wrong.
        results: Vec<ItemResult>,
    },
    /// The processor holds its thread for longer than the item timeout, without an await and without beginning another
    /// item. The thread cannot be ended; the process has to end after it has answered its invocation.
    Held {
        /// The row of the item in progress, or of the first item if the processor does not tell.
        row: u64,
    },
}

/// The result of an item.
pub type ItemResult = Result<ItemOutcome, ItemError>;

/// How the items of a batch are handed to the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchCall {
    /// Together.
    Together,
    /// A single item, of an isolated chunk.
    Alone,
    /// Without the effects.
    DryRun,
}

/// Items that are processed together.
pub struct ItemBatch {
    /// The processor of their job.
    pub processor: Arc<dyn ItemProcessor>,
    /// The items.
    pub items: Vec<Item>,
    /// How they are handed over.
    pub call: BatchCall,
    /// How many bytes their outputs may have together. An item beyond that fails with [`OUTPUT_TOO_LARGE`], and its output
    /// is dropped at once. A job type with a `process_batch` of its own bounds its outputs itself.
    pub output_max_bytes: u64,
}

/// The code of an item whose output exceeds the limit of its chunk.
pub const OUTPUT_TOO_LARGE: &str = "output_too_large";

impl ItemBatch {
    /// Hands the items to the processor and returns what it answers.
    pub async fn results(&self) -> Vec<ItemResult> {
        let mut work = pin!(self.unbounded_results());
        let mut left = self.output_max_bytes;
        poll_fn(|context| {
            // The thread may be another one at each poll.
            OUTPUT_LEFT.set(left);
            let poll = work.as_mut().poll(context);
            left = OUTPUT_LEFT.replace(u64::MAX);
            poll
        })
        .await
    }

    async fn unbounded_results(&self) -> Vec<ItemResult> {
        let processor = &self.processor;
        match (self.call, self.items.as_slice()) {
            (BatchCall::DryRun, items) => {
                let checks: Vec<_> = items.iter().map(|item| AtItem::new(item, processor.dry_run(item))).collect();
                stream::iter(checks).buffered(processor.concurrency().max(1)).collect().await
            }
            (BatchCall::Alone, [item]) => vec![AtItem::new(item, processor.process_alone(item)).await],
            (BatchCall::Alone | BatchCall::Together, items) => processor.process_batch(items).await,
        }
    }
}

/// Watches which item a thread is at.
pub trait ItemObserver: Send + Sync {
    /// The thread begins or continues with the item of this row. `false` if nobody waits for its result any more.
    fn at_item(&self, row: u64) -> bool;
}

thread_local! {
    /// Who watches this thread, during a poll.
    static OBSERVER: RefCell<Option<Arc<dyn ItemObserver>>> = const { RefCell::new(None) };
    /// How many bytes of outputs the batch that this thread polls may still have.
    static OUTPUT_LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Runs `poll` on this thread while `observer` watches it.
pub fn observed<T>(observer: Arc<dyn ItemObserver>, poll: impl FnOnce() -> T) -> T {
    /// Restores the observer before, also after a panic.
    struct Restore(Option<Arc<dyn ItemObserver>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OBSERVER.set(self.0.take());
        }
    }
    let _restore = Restore(OBSERVER.replace(Some(observer)));
    poll()
}

/// Tells who watches this thread that it begins with the item of this row. A job type whose `process_batch` works row by
/// row calls this for each row, so that an item that takes too long is found by its row, and is the only one that counts.
pub fn begin_item(row: u64) -> bool {
    OBSERVER.with_borrow(|observer| observer.as_ref().is_none_or(|observer| observer.at_item(row)))
}

/// The work on one item: each poll tells the observer its row.
pub(super) struct AtItem<F> {
    row: u64,
    work: F,
}

impl<F: Future<Output = ItemResult> + Unpin> AtItem<F> {
    pub(super) const fn new(item: &Item, work: F) -> Self {
        Self { row: item.row, work }
    }
}

impl<F: Future<Output = ItemResult> + Unpin> Future for AtItem<F> {
    type Output = ItemResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ItemResult> {
        // Nobody waits for a batch that was abandoned, so its further items do not begin. Whoever runs it drops it.
        if begin_item(self.row) { Pin::new(&mut self.work).poll(context).map(bounded) } else { Poll::Pending }
    }
}

/// The result, without an output that is too large beside those before it in its batch.
fn bounded(result: ItemResult) -> ItemResult {
    let Ok(ItemOutcome::Output(output)) = &result else { return result };
    match OUTPUT_LEFT.get().checked_sub(output.len() as u64) {
        Some(left) => {
            OUTPUT_LEFT.set(left);
            result
        }
        None => Err(ItemError::permanent(OUTPUT_TOO_LARGE, "the outputs of its chunk are too large with this one")),
    }
}
