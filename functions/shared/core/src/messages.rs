//! The messages between the functions. Each is small, carries what its receiver accounts with, and may arrive any number
//! of times in any order.

use serde::{Deserialize, Serialize};

use crate::ids::{JobGuid, Owner};
use crate::tally::ChunkAddress;
use crate::text::Chunk;

/// On the jobs queue: cut the file of this job, from wherever the job row says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SplitMessage {
    /// The job.
    pub job_guid: JobGuid,
    /// Its attempt; a message of another attempt is acknowledged and forgotten.
    pub attempt: u32,
    /// Whose job it is, the group of the message.
    pub owner: Owner,
}

/// On the items queue: process the items of this chunk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkMessage {
    /// The job.
    pub job_guid: JobGuid,
    /// Whose job it is, the group of the message.
    pub owner: Owner,
    /// Which chunk of the job.
    #[serde(flatten)]
    pub address: ChunkAddress,
    /// Where its bytes are, and how many items it accounts for.
    pub chunk: Chunk,
}

/// On the completions queue: every item of this attempt is accounted for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionMessage {
    /// The job.
    pub job_guid: JobGuid,
    /// Its attempt; a message of another attempt is acknowledged and forgotten.
    pub attempt: u32,
    /// Whose job it is, the group of the message.
    pub owner: Owner,
}

/// A message and the owner it is grouped by, so that one busy owner cannot starve the others.
pub trait Grouped {
    /// Whose work it is.
    fn owner(&self) -> &Owner;
}

impl Grouped for SplitMessage {
    fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl Grouped for ChunkMessage {
    fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl Grouped for CompletionMessage {
    fn owner(&self) -> &Owner {
        &self.owner
    }
}
