//! From the dead-letter queues' events to the use case.

use rowmill_aws::{Batch, Delivery};
use rowmill_core::ports::PortError;

use crate::settle::{DeadLetters, DeadMessage};

/// Settles each dead letter of the batch. Returns the ids of the messages to deliver again.
pub async fn handle(dead_letters: &DeadLetters, batch: Batch<DeadMessage>) -> Vec<String> {
    let settle = |delivery: Delivery<DeadMessage>, _deadline| async move {
        let Delivery { message_id, message, .. } = delivery;
        let end = dead_letters.settle(&message_id, &message).await?;
        tracing::warn!(job.id = %message.job_guid(), message.id = message_id, ?end, "dead letter");
        Ok::<(), PortError>(())
    };
    batch.take_each(DeadMessage::job_guid, "dead letter not settled yet", settle).await
}
