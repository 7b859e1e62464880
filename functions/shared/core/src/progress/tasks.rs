//! Tasks that no worker may process any more.

use crate::model::messages::{ChunkMessage, DeliveryMode};
use crate::model::task::Task;
use crate::ports::{PortError, Queue, Tasks};

/// Sends the message of a task to the items queue, and then removes the task: `process-items` decides what becomes of
/// the chunk.
pub async fn give_back(
    tasks: &dyn Tasks,
    chunks: &dyn Queue<ChunkMessage>,
    given_back: &Task,
) -> Result<(), PortError> {
    let message = ChunkMessage { delivery_mode: DeliveryMode::Recovered, ..given_back.message.clone() };
    chunks.send(&[message]).await?;
    tasks.remove(given_back).await
}
