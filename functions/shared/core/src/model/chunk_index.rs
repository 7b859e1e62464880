//! The chunk index: where the chunks of a tally are, kept as one small object per tally.
//!
//! A tally row knows how many chunks and items it has, not where they are. Whoever needs a chunk that it holds no message
//! of (to send on the next one of a job with `maxConcurrency`, to send a lost one again, to list what was skipped) finds it
//! here. It is put before the tally row, and is the same whoever puts it.

use serde::{Deserialize, Serialize};

use crate::model::ids::{JobGuid, Owner, RunId};
use crate::model::messages::{ChunkMessage, DeliveryMode, StoredText};
use crate::model::tally::ChunkAddress;
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
    /// Where their text is, if they are not ranges of the upload.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stored: Option<StoredChunks>,
}

/// Where the text of a tally's chunks is, of a job whose chunks are objects.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredChunks {
    /// The run of the split that stored them.
    pub by: RunId,
    /// What each counts in the job's percent.
    pub weights: Vec<u64>,
    /// Where a dataset is to be read on behind them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<RecordPosition>,
}

/// A place between two records of a dataset.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RecordPosition {
    /// The partition, counted from 0.
    pub partition: u32,
    /// The key of the last record before it, if it is not the partition's start.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<String>,
}

impl ChunkIndex {
    /// Where a dataset is to be read on behind this tally.
    pub fn next_record(&self) -> Option<RecordPosition> {
        self.stored.as_ref().and_then(|stored| stored.next.clone())
    }

    /// The message of the chunk at this place, if the tally has one there.
    pub fn message(
        &self,
        job_guid: JobGuid,
        owner: &Owner,
        address: ChunkAddress,
        delivery_mode: DeliveryMode,
    ) -> Option<ChunkMessage> {
        let chunk = *self.chunks.get(usize::from(address.index))?;
        let (owner, max_concurrency) = (owner.clone(), self.max_concurrency);
        let stored = match &self.stored {
            None => None,
            Some(stored) => {
                Some(StoredText { by: stored.by, weight: *stored.weights.get(usize::from(address.index))? })
            }
        };
        Some(ChunkMessage { job_guid, owner, address, chunk, delivery_mode, max_concurrency, stored })
    }
}
