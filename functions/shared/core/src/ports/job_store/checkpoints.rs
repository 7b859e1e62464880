use async_trait::async_trait;

use crate::model::checkpoint::Checkpoint;
use crate::model::ids::JobGuid;
use crate::model::tally::ChunkAddress;
use crate::ports::PortError;

/// The checkpoints of chunks that were begun and not finished by one run.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    async fn checkpoint(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError>;

    /// Swaps a checkpoint for its next revision, `moved`. Condition: the stored one is at `rev - 1`, or absent if
    /// `moved` is the first revision.
    async fn move_checkpoint(&self, job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CheckpointMoved {
    /// It is moved: now, or earlier with the reply lost.
    Won,
    /// Another run has moved it. Holds the current checkpoint.
    Lost(Checkpoint),
}
