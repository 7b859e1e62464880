//! Prepares processors and runs the items of a batch where one that does not yield holds up nothing else.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use super::item::{Item, ItemResult};
use super::item_watch::{AtItem, with_output_left};
use super::processor::{ItemProcessor, JobType, ParamsError};
use crate::model::spec::Spec;
use async_trait::async_trait;

/// Prepares processors and runs batches of items.
#[async_trait]
pub trait BatchRunner: Send + Sync {
    /// Runs the batch. If the caller drops the future, nobody waits for the batch any more: it ends at its next await.
    async fn run(&self, batch: ItemBatch) -> BatchEnd;

    /// Prepares the processor of a job, which may compile its params for long. By default in the caller's task.
    async fn prepare(
        &self,
        job_type: Arc<dyn JobType>,
        spec: Arc<Spec>,
    ) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        job_type.prepare(&spec)
    }
}

#[derive(Debug)]
pub enum BatchEnd {
    Answered {
        items: Vec<Item>,
        /// The processor's answer: one result for each item, unless the processor is wrong.
        results: Vec<ItemResult>,
    },
    /// The processor holds its thread for longer than the item timeout, without an await and without beginning another
    /// item. The thread cannot be ended; the process has to end after it has answered its invocation.
    Held {
        /// The row of the item in progress, or of the first item if the processor does not tell.
        row: u64,
    },
}

/// The call by which the processor gets the items of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchCall {
    Together,
    /// A single item, of an isolated chunk.
    Alone,
    /// Without the effects.
    DryRun,
}

pub struct ItemBatch {
    pub processor: Arc<dyn ItemProcessor>,
    pub items: Vec<Item>,
    pub call: BatchCall,
    /// Maximum number of bytes of their outputs together. An item beyond that fails with
    /// [`OUTPUT_TOO_LARGE`](super::OUTPUT_TOO_LARGE), and its output is dropped at once. A job type with a
    /// `process_batch` of its own bounds its outputs itself.
    pub output_max_bytes: u64,
}

impl ItemBatch {
    /// Hands the items to the processor and returns what it answers.
    pub async fn results(&self) -> Vec<ItemResult> {
        let mut work = pin!(self.unbounded_results());
        let mut left = self.output_max_bytes;
        poll_fn(|context| with_output_left(&mut left, || work.as_mut().poll(context))).await
    }

    async fn unbounded_results(&self) -> Vec<ItemResult> {
        let processor = &self.processor;
        match (self.call, self.items.as_slice()) {
            (BatchCall::DryRun, items) => processor.dry_run_batch(items).await,
            (BatchCall::Alone, [item]) => vec![AtItem::new(item, processor.process_alone(item)).await],
            (BatchCall::Alone | BatchCall::Together, items) => processor.process_batch(items).await,
        }
    }
}
