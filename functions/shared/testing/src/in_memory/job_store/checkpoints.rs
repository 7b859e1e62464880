use async_trait::async_trait;

use super::{InMemoryJobStore, Tables};
use crate::in_memory::lock;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::ChunkAddress;
use rowmill_core::ports::{CheckpointMoved, Checkpoints, PortError};

#[async_trait]
impl Checkpoints for InMemoryJobStore {
    async fn checkpoint(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError> {
        Ok(lock(&self.0).checkpoints.get(&(job, chunk)).cloned())
    }

    async fn move_checkpoint(&self, job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError> {
        Ok(lock(&self.0).move_checkpoint(job, moved))
    }
}

impl Tables {
    pub(super) fn move_checkpoint(&mut self, job: JobGuid, moved: &Checkpoint) -> CheckpointMoved {
        let place = (job, moved.chunk);
        match self.checkpoints.get(&place) {
            Some(there) if there == moved => CheckpointMoved::Won,
            Some(there) if there.rev + 1 != moved.rev => CheckpointMoved::Lost(there.clone()),
            None if moved.rev != 1 => CheckpointMoved::Lost(Checkpoint::blank(moved.chunk, moved.at)),
            _ => {
                self.checkpoints.insert(place, moved.clone());
                CheckpointMoved::Won
            }
        }
    }
}
