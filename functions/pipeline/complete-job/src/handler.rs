//! From the completions queue's event to the use case.

use rowmill_aws::{Batch, Delivery};
use rowmill_core::model::messages::CompletionMessage;
use rowmill_core::ports::PortError;

use crate::complete::Completer;

/// Ends each attempt of the batch. Returns the ids of the messages to deliver again.
pub async fn handle(completer: &Completer, batch: Batch<CompletionMessage>) -> Vec<String> {
    let complete = |delivery: Delivery<CompletionMessage>, deadline| async move {
        let message = delivery.message;
        let end = completer.complete(&message, deadline).await?;
        tracing::info!(job.id = %message.job_guid, job.attempt = message.attempt, ?end, "completion");
        Ok::<(), PortError>(())
    };
    batch.take_each(|message| message.job_guid, "completion failed", complete).await
}
