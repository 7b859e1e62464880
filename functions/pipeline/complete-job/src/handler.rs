//! From the completions queue's event to the use case.

use rowmill_aws::Batch;
use rowmill_core::model::messages::CompletionMessage;

use crate::complete::Completer;

/// Ends each attempt of the batch; the ids of the messages to deliver again.
pub async fn handle(completer: &Completer, batch: Batch<CompletionMessage>) -> Vec<String> {
    let mut retry = Vec::new();
    for delivery in batch.deliveries {
        let job = delivery.message.job_guid;
        match completer.complete(&delivery.message, batch.deadline).await {
            Ok(end) => tracing::info!(job.id = %job, job.attempt = delivery.message.attempt, ?end, "completion"),
            Err(error) => {
                tracing::warn!(
                    job.id = %job, error = &error as &dyn std::error::Error, "completion failed, to be tried again"
                );
                retry.push(delivery.message_id);
            }
        }
    }
    retry
}
