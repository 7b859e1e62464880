//! Tasks that no worker may process any more.

use crate::model::messages::ChunkMessage;
use crate::model::task::Task;
use crate::ports::{PortError, Queue, Tasks};

/// Sends the message of a task to the items queue, and then removes the task: `process-items` decides what becomes of
/// the chunk.
pub async fn give_back(
    tasks: &dyn Tasks,
    chunks: &dyn Queue<ChunkMessage>,
    given_back: &Task,
) -> Result<(), PortError> {
    chunks.send(std::slice::from_ref(&given_back.message)).await?;
    tasks.remove(given_back).await
}
