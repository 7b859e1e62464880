//! The chunk index: where the chunks of a tally are, kept as one small object per tally.
//!
//! A tally row knows how many chunks and items it has, not where they are. Whoever needs a chunk that it holds no message
//! of (to send on the next one of a job with `maxConcurrency`, to send a lost one again, to list what was skipped) finds it
//! here. It is put before the tally row, and is the same whoever puts it.

use serde::{Deserialize, Serialize};

use crate::ids::{JobGuid, Owner};
use crate::messages::{ChunkMessage, Handling};
use crate::ports::{Objects, PortError};
use crate::tally::ChunkAddress;
use crate::text::{Chunk, Position};

/// The chunks of one tally.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkIndex {
    /// The border before the first chunk.
    pub start: Position,
    /// The border after the last one.
    pub end: Position,
    /// How many chunks of the job may be in flight at once, if there is a bound.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_concurrency: Option<u32>,
    /// The chunks in order.
    pub chunks: Vec<Chunk>,
}

/// The key of a tally's chunk index.
pub fn chunk_index_key(job: JobGuid, attempt: u32, tally: u32) -> String {
    format!("results/{job}/{attempt}/chunks/{tally:08}.json")
}

impl ChunkIndex {
    /// Stores the index of this tally.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn put(&self, objects: &dyn Objects, job: JobGuid, attempt: u32, tally: u32) -> Result<(), PortError> {
        let json = serde_json::to_vec(self).map_err(|error| PortError::invalid("writing a chunk index", error))?;
        objects.put(&chunk_index_key(job, attempt, tally), "application/json", json.into(), None).await?;
        Ok(())
    }

    /// Reads the index of this tally.
    ///
    /// # Errors
    /// `NotFound` where the tally was never put; `Invalid` where the object is not Rowmill's.
    pub async fn read(objects: &dyn Objects, job: JobGuid, attempt: u32, tally: u32) -> Result<Self, PortError> {
        let json = objects.read(&chunk_index_key(job, attempt, tally)).await?;
        serde_json::from_slice(&json).map_err(|error| PortError::invalid("reading a chunk index", error))
    }

    /// The message of the chunk at this place, if the tally has one there.
    pub fn message(
        &self,
        job_guid: JobGuid,
        owner: &Owner,
        address: ChunkAddress,
        handling: Handling,
    ) -> Option<ChunkMessage> {
        let chunk = *self.chunks.get(usize::from(address.index))?;
        let (owner, max_concurrency) = (owner.clone(), self.max_concurrency);
        Some(ChunkMessage { job_guid, owner, address, chunk, handling, max_concurrency })
    }
}
