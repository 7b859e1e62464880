//! From the dead-letter queues' events to the use case.

use rowmill_aws::Batch;

use crate::settle::{DeadLetters, DeadMessage};

/// Settles each dead letter of the batch; the ids of the messages to deliver again.
pub async fn handle(dead_letters: &DeadLetters, batch: Batch<DeadMessage>) -> Vec<String> {
    let mut retry = Vec::new();
    for delivery in batch.deliveries {
        let job = delivery.message.job_guid();
        match dead_letters.settle(&delivery.message_id, &delivery.message).await {
            Ok(end) => tracing::warn!(job.id = %job, message.id = delivery.message_id, ?end, "dead letter"),
            Err(error) => {
                tracing::warn!(
                    job.id = %job, message.id = delivery.message_id, error = &error as &dyn std::error::Error,
                    "dead letter not settled yet, to be tried again"
                );
                retry.push(delivery.message_id);
            }
        }
    }
    retry
}
