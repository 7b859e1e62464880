//! Dead letters: the messages that a queue gave up on, as they are recorded before anything else happens to them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::messages::ChunkMessage;
use crate::model::tally::ChunkAddress;

/// Code of an item that kept ending the process that ran it.
pub const POISON: &str = "poison";

/// Code of an item whose chunk was given up.
pub const DEAD_LETTER: &str = "dead_letter";

/// A message that a queue gave up on. It says where the work lies, never what is in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// What the queue called the message.
    pub message_id: String,
    /// What it was about.
    pub about: DeadLetterKind,
    /// The job's attempt it belonged to.
    pub attempt: u32,
    /// The chunk it was about, if it was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub chunk: Option<DeadChunk>,
    /// When it was recorded.
    pub at: Timestamp,
}

/// What a dead letter was about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeadLetterKind {
    /// A chunk of items.
    Items,
    /// A chunk whose items were run one at a time already.
    Isolated,
    /// Cutting the file.
    Split,
    /// Ending the job.
    Completion,
}

/// The chunk of a dead letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadChunk {
    /// The number of its tally.
    pub tally: u32,
    /// Its place in the tally.
    pub index: u8,
    /// The row of its first item.
    pub first_row: u64,
    /// How many items it has.
    pub items: u32,
}

impl From<&ChunkMessage> for DeadChunk {
    fn from(message: &ChunkMessage) -> Self {
        let ChunkAddress { tally, index, .. } = message.address;
        Self { tally, index, first_row: message.chunk.first_row, items: message.chunk.items }
    }
}
