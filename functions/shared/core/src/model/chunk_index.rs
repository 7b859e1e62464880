//! The chunk index: the places of a tally's chunks, in one small object per tally.
//!
//! A tally row holds the number of its chunks and items, but not their places. Functions that need a chunk without its
//! message read them here: to send the next chunk of a job with `maxConcurrency`, to send a lost one again, to list
//! skipped rows. The index is put before the tally row. For ranges of an upload every run puts the same index.

use serde::{Deserialize, Serialize};

use crate::model::files::{FilePosition, Part};
use crate::model::ids::RunId;
use crate::model::job::Job;
use crate::model::messages::{ChunkMessage, DeliveryMode, StoredText};
use crate::model::tally::{ChunkAddress, Tally};
use crate::text::{Chunk, Position};

/// The chunks of one tally.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkIndex {
    /// The border before the first chunk.
    pub start: Position,
    /// The border after the last chunk.
    pub end: Position,
    pub chunks: Vec<Chunk>,
    /// The objects that hold their text, if they are not ranges of the upload.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stored: Option<StoredChunks>,
    /// In a job over many files: where the chunks come from, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parts: Vec<IndexedPart>,
}

/// Where chunks of a tally come from: those from `first` on, up to the next part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexedPart {
    /// The place of its first chunk.
    pub first: u8,
    #[serde(flatten)]
    pub part: Part,
}

/// The stored text of a tally's chunks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredChunks {
    /// The run of the split that stored them.
    pub by: RunId,
    /// The weight of each chunk in the job's percent.
    pub weights: Vec<u64>,
    /// Where to read the dataset on after them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<RecordPosition>,
    /// Where to read the files on after them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_file: Option<FilePosition>,
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
    /// Where to read the dataset on after this tally.
    pub fn next_record(&self) -> Option<RecordPosition> {
        self.stored.as_ref().and_then(|stored| stored.next.clone())
    }

    /// Where to read the files on after this tally.
    pub fn next_file(&self) -> Option<FilePosition> {
        self.stored.as_ref().and_then(|stored| stored.next_file)
    }

    /// The part of the chunk at this place.
    pub fn part(&self, place: u8) -> Option<&Part> {
        self.parts.iter().rev().find(|part| part.first <= place).map(|indexed| &indexed.part)
    }

    /// The messages of the chunks of this tally of the job that are not committed.
    pub fn missing(&self, job: &Job, tally: &Tally, delivery_mode: DeliveryMode) -> Vec<ChunkMessage> {
        let places = (0..).take(self.chunks.len()).filter(|place: &u8| tally.mark(*place).is_none());
        let address = |index| ChunkAddress { attempt: tally.attempt, tally: tally.number, index };
        places.filter_map(|place| self.message(job, address(place), delivery_mode)).collect()
    }

    /// The message of the chunk of this job at this place, if the tally has one there.
    pub fn message(&self, job: &Job, address: ChunkAddress, delivery_mode: DeliveryMode) -> Option<ChunkMessage> {
        let chunk = *self.chunks.get(usize::from(address.index))?;
        let stored = match &self.stored {
            None => None,
            Some(stored) => {
                Some(StoredText { by: stored.by, weight: *stored.weights.get(usize::from(address.index))? })
            }
        };
        let part = self.part(address.index).cloned().map(Box::new);
        Some(ChunkMessage { delivery_mode, stored, part, ..ChunkMessage::of(job, address, chunk) })
    }
}
