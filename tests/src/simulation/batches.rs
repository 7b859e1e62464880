//! Runs the items within the invocation's own task, and notices those that hold it.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use rowmill_core::ports::{BatchEnd, BatchRunner, ItemBatch};

use super::hub::Hub;

/// Maximum time an item may hold its thread.
pub const ITEM_TIMEOUT: Duration = Duration::from_secs(5);

/// The invocations in which items hold their threads, each with the rows. Their processes end with them.
#[derive(Clone, Default)]
pub struct Holds(Arc<Mutex<BTreeMap<u64, Vec<u64>>>>);

impl Holds {
    /// The item of this row holds the thread of this invocation from now on.
    pub fn hold(&self, task: u64, row: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(task).or_default().push(row);
    }

    /// The rows that hold threads of this invocation.
    pub fn rows(&self, task: u64) -> Vec<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&task).cloned().unwrap_or_default()
    }
}

pub struct SimulatedBatches {
    /// The clock, and the invocation that runs now.
    pub hub: Hub,
    /// The items that hold a thread.
    pub holds: Holds,
}

#[async_trait]
impl BatchRunner for SimulatedBatches {
    async fn run(&self, batch: ItemBatch) -> BatchEnd {
        let task = self.hub.current();
        let held = {
            let mut results = pin!(batch.results());
            let polled = poll_fn(|context| {
                // Other batches of the invocation have threads of their own.
                let others = self.holds.rows(task).len();
                match results.as_mut().poll(context) {
                    Poll::Ready(results) => Poll::Ready(Ok(results)),
                    Poll::Pending => {
                        self.holds.rows(task).get(others).map_or(Poll::Pending, |row| Poll::Ready(Err(*row)))
                    }
                }
            });
            match polled.await {
                Ok(results) => Ok(results),
                Err(row) => {
                    self.hub.sleep(ITEM_TIMEOUT).await;
                    Err(row)
                }
            }
        };
        match held {
            Ok(results) => BatchEnd::Answered { items: batch.items, results },
            Err(row) => {
                self.hub.tell(Some(task), || format!("row {row} HOLDS its thread"));
                BatchEnd::Held { row }
            }
        }
    }
}
