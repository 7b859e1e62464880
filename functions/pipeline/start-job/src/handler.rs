//! From the starts queue's event to the use case.

use rowmill_aws::{Batch, Delivery};
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::ports::PortError;

use crate::starter::Starter;

/// Looks for what each job of the batch waits for. Returns the ids of the messages to deliver again.
pub async fn handle(starter: &Starter, batch: Batch<SplitMessage>) -> Vec<String> {
    let start = |delivery: Delivery<SplitMessage>, _| async move {
        let message = delivery.message;
        let end = starter.start(&message).await?;
        tracing::info!(job.id = %message.job_guid, ?end, "looked for what a job waits for");
        Ok::<(), PortError>(())
    };
    batch.take_each(|message| message.job_guid, "start failed", start).await
}
