//! From the jobs queue's event to the use case.

use rowmill_aws::{Batch, Delivery};
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::ports::PortError;

use crate::split::Splitter;

/// Splits each job of the batch. Returns the ids of the messages to deliver again.
pub async fn handle(splitter: &Splitter, batch: Batch<SplitMessage>) -> Vec<String> {
    let split = |delivery: Delivery<SplitMessage>, deadline| async move {
        let message = delivery.message;
        let end = splitter.split(&message, deadline).await?;
        tracing::info!(job.id = %message.job_guid, job.attempt = message.attempt, ?end, "split");
        Ok::<(), PortError>(())
    };
    batch.take_each(|message| message.job_guid, "split failed", split).await
}
