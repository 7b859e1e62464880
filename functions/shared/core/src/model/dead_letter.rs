//! Dead letters: the messages that a queue gave up on, as they are recorded before anything else happens to them.

pub use rowmill_api::dead_letter::{DeadChunk, DeadLetter, DeadLetterKind};

use crate::model::messages::ChunkMessage;
use crate::model::tally::ChunkAddress;

/// Code of an item that kept ending the process that ran it.
pub const POISON: &str = "poison";

/// Code of an item whose chunk was given up.
pub const DEAD_LETTER: &str = "dead_letter";

impl From<&ChunkMessage> for DeadChunk {
    fn from(message: &ChunkMessage) -> Self {
        let ChunkAddress { tally, index, .. } = message.address;
        Self { tally, index, first_row: message.chunk.first_row, items: message.chunk.items }
    }
}
