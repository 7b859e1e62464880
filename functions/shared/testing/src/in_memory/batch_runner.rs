use async_trait::async_trait;

use rowmill_core::ports::{BatchEnd, BatchRunner, ItemBatch};

/// Runs each batch within the caller's task, so that a test decides when it goes on. It cannot notice a processor that
/// holds its thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineBatchRunner;

#[async_trait]
impl BatchRunner for InlineBatchRunner {
    async fn run(&self, batch: ItemBatch) -> BatchEnd {
        let results = batch.results().await;
        BatchEnd::Answered { items: batch.items, results }
    }
}
