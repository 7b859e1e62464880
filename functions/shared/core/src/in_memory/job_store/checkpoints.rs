use async_trait::async_trait;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use crate::model::checkpoint::Checkpoint;
use crate::model::ids::JobGuid;
use crate::model::tally::ChunkAddress;
use crate::ports::{CheckpointMoved, Checkpoints, PortError};

#[async_trait]
impl Checkpoints for InMemoryJobStore {
    async fn checkpoint(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError> {
        Ok(lock(&self.0).checkpoints.get(&(job, chunk)).cloned())
    }

    async fn move_checkpoint(&self, job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError> {
        let mut tables = lock(&self.0);
        let place = (job, moved.chunk);
        match tables.checkpoints.get(&place) {
            Some(there) if there == moved => Ok(CheckpointMoved::Won),
            Some(there) if there.rev + 1 != moved.rev => Ok(CheckpointMoved::Lost(there.clone())),
            None if moved.rev != 1 => Ok(CheckpointMoved::Lost(Checkpoint::blank(moved.chunk, moved.at))),
            _ => {
                tables.checkpoints.insert(place, moved.clone());
                Ok(CheckpointMoved::Won)
            }
        }
    }
}
