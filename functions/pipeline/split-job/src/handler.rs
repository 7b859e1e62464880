//! From the jobs queue's event to the use case.

use rowmill_aws::Batch;
use rowmill_core::model::messages::SplitMessage;

use crate::split::Splitter;

/// Splits each job of the batch; the ids of the messages to deliver again.
pub async fn handle(splitter: &Splitter, batch: Batch<SplitMessage>) -> Vec<String> {
    let mut retry = Vec::new();
    for delivery in batch.deliveries {
        let job = delivery.message.job_guid;
        match splitter.split(&delivery.message, batch.deadline).await {
            Ok(end) => tracing::info!(job.id = %job, job.attempt = delivery.message.attempt, ?end, "split"),
            Err(error) => {
                tracing::warn!(job.id = %job, error = &error as &dyn std::error::Error, "split failed, to be tried again");
                retry.push(delivery.message_id);
            }
        }
    }
    retry
}
