//! Chunk indexes in the bucket, see [`ChunkIndex`].

use crate::model::chunk_index::ChunkIndex;
use crate::model::ids::{JobGuid, RunId};
use crate::model::keys;
use crate::model::tally::Tally;
use crate::ports::{Objects, PortError};

pub async fn put(
    objects: &dyn Objects,
    job: JobGuid,
    attempt: u32,
    tally: u32,
    index: &ChunkIndex,
) -> Result<(), PortError> {
    let json = serde_json::to_vec(index).map_err(|error| PortError::invalid("writing a chunk index", error))?;
    let key = keys::chunk_index(job, attempt, tally, index.stored.as_ref().map(|stored| stored.by));
    objects.put(&key, "application/json", json.into(), None).await?;
    Ok(())
}

/// Reads the index of a tally.
///
/// # Errors
/// `NotFound` if the tally was never put; `Invalid` if the object is not Rowmill's.
pub async fn read(
    objects: &dyn Objects,
    job: JobGuid,
    attempt: u32,
    tally: u32,
    stored_by: Option<RunId>,
) -> Result<ChunkIndex, PortError> {
    let json = objects.read(&keys::chunk_index(job, attempt, tally, stored_by)).await?;
    serde_json::from_slice(&json).map_err(|error| PortError::invalid("reading a chunk index", error))
}

/// Reads the index of a tally that has been put.
pub async fn of(objects: &dyn Objects, job: JobGuid, tally: &Tally) -> Result<ChunkIndex, PortError> {
    read(objects, job, tally.attempt, tally.number, tally.stored_by).await
}
