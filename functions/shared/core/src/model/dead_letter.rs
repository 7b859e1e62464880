//! Dead letters: the messages that a queue gave up on, as they are recorded before anything else happens to them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::messages::ChunkMessage;
use crate::model::tally::ChunkAddress;
use crate::words::{Open, words};

/// Code of an item that kept ending the process that ran it.
pub const POISON: &str = "poison";

/// Code of an item whose chunk was given up.
pub const DEAD_LETTER: &str = "dead_letter";

words! {
    /// The work that a dead letter asked for.
    DeadLetterKind {
        /// To process a chunk of items.
        Items = "items",
        /// To process an isolated chunk.
        Isolated = "isolated",
        /// To split the file.
        Split = "split",
        /// To complete the job.
        Completion = "completion",
    }
}

/// A dead letter as it is stored. It names the work, never its content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The queue's name for the message.
    pub message_id: String,
    pub about: Open<DeadLetterKind>,
    pub attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub chunk: Option<DeadChunk>,
    /// When it was recorded.
    pub at: Timestamp,
}

/// The chunk of a dead letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadChunk {
    pub tally: u32,
    /// Its place in the tally.
    pub index: u8,
    pub first_row: u64,
    pub items: u32,
}

impl From<&ChunkMessage> for DeadChunk {
    fn from(message: &ChunkMessage) -> Self {
        let ChunkAddress { tally, index, .. } = message.address;
        Self { tally, index, first_row: message.chunk.first_row, items: message.chunk.items }
    }
}
