//! From the items queue's event to the use case.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use rowmill_aws::observe::metrics::{self, Metric};
use rowmill_aws::{Batch, Delivery};
use rowmill_core::model::messages::ChunkMessage;

use crate::end::{ChunkEnd, RunError};
use crate::invocation::Invocation;
use crate::process::ChunkProcessor;

/// Maximum age of a read job row while items are processed. It bounds how late a stop is noticed.
const WATCH_MAX_AGE: Duration = Duration::from_secs(2);

/// Processes the chunks of the batch concurrently. Returns the ids of the messages to deliver again.
pub async fn handle(processor: &ChunkProcessor, batch: Batch<ChunkMessage>) -> Vec<String> {
    let received = batch.deliveries.iter().map(|delivery| (&delivery.message, delivery.receive_count > 1));
    let invocation = Invocation::new(&processor.ports, &processor.committer, WATCH_MAX_AGE, received);
    let time_left = batch.deadline.duration_since(processor.ports.clock.now());
    let time_left = Duration::try_from(time_left).unwrap_or_default().saturating_sub(processor.runs.limits.margin / 4);
    let chunks = batch.deliveries.len().max(1);
    stream::iter(batch.deliveries)
        .map(|delivery| {
            let invocation = &invocation;
            async move {
                let work = process(processor, &delivery, batch.deadline, invocation);
                // A run keeps to the time limit itself. This timeout is for a store that does not answer: it must not
                // delay the other chunks.
                let result = tokio::time::timeout(time_left, work).await;
                let result = result.unwrap_or_else(|_| Err(RunError::TryAgain("it took too long".into())));
                result.err().map(|error| failed(&delivery, &error))
            }
        })
        .buffer_unordered(chunks)
        .filter_map(std::future::ready)
        .collect()
        .await
}

async fn process(
    processor: &ChunkProcessor,
    delivery: &Delivery<ChunkMessage>,
    deadline: jiff::Timestamp,
    invocation: &Invocation,
) -> Result<(), RunError> {
    let message = &delivery.message;
    let begun = Instant::now();
    let redelivered = delivery.receive_count > 1;
    let run = processor.process(message, redelivered, deadline, invocation);
    let end = match message.lane {
        Some(_) => processor.lane.during(&delivery.receipt, deadline, run).await?,
        None => run.await?,
    };
    if let ChunkEnd::Committed(_) = end {
        metrics::time(Metric::ChunkDuration, begun.elapsed());
    }
    tracing::debug!(
        job.id = %message.job_guid, chunk.tally = message.address.tally, chunk.index = message.address.index, ?end, "chunk"
    );
    Ok(())
}

fn failed(delivery: &Delivery<ChunkMessage>, error: &RunError) -> String {
    let message = &delivery.message;
    tracing::warn!(
        job.id = %message.job_guid, chunk.tally = message.address.tally, chunk.index = message.address.index,
        message.receive_count = delivery.receive_count, error = error as &dyn std::error::Error,
        "chunk not committed, to be tried again"
    );
    delivery.message_id.clone()
}
