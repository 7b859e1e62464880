//! The state of a thread that runs a batch: the item in progress, and the bytes that are left for outputs.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::item::{Item, ItemError, ItemOutcome, ItemResult};

/// The code of an item whose output exceeds the limit of its chunk.
pub const OUTPUT_TOO_LARGE: &str = "output_too_large";

/// Watches which item a thread is at.
pub trait ItemObserver: Send + Sync {
    /// The thread begins or continues with the item of this row. `false` if nobody waits for its result any more.
    fn at_item(&self, row: u64) -> bool;
}

thread_local! {
    /// Who watches this thread, during a poll.
    static OBSERVER: RefCell<Option<Arc<dyn ItemObserver>>> = const { RefCell::new(None) };
    /// Remaining bytes of outputs of the batch that this thread polls.
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

/// Runs `poll` on this thread with so many bytes left for the outputs of its batch. A batch may be polled by several
/// threads.
pub(super) fn with_output_left<T>(left: &mut u64, poll: impl FnOnce() -> T) -> T {
    OUTPUT_LEFT.set(*left);
    let polled = poll();
    *left = OUTPUT_LEFT.replace(u64::MAX);
    polled
}

/// Tells who watches this thread that it begins with the item of this row. A job type whose `process_batch` works row
/// by row calls this for each row, so that an item that takes too long is found by its row, and is the only one that
/// counts.
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
        // Nobody waits for a batch that was abandoned, so its further items do not begin. The runner drops it.
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
