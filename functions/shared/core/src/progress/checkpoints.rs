//! The checkpoints of many chunks.

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::model::checkpoint::Checkpoint;
use crate::model::ids::JobGuid;
use crate::model::tally::ChunkAddress;
use crate::ports::{JobStore, PortError};

/// Number of checkpoints that are read at once.
const READS_AT_ONCE: usize = 16;

/// Reads the checkpoints of these chunks, in their order. One that cannot be read is passed over: who processes its chunk
/// reports it, and it hides no other.
pub async fn of_chunks(
    jobs: &dyn JobStore,
    chunks: impl IntoIterator<Item = (JobGuid, ChunkAddress)>,
) -> Result<Vec<Option<Checkpoint>>, PortError> {
    let read = async |(job, chunk)| match jobs.checkpoint(job, chunk).await {
        Err(PortError::Invalid { .. }) => Ok(None),
        checkpoint => checkpoint,
    };
    let reads: Vec<_> = chunks.into_iter().map(read).collect();
    stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await
}
