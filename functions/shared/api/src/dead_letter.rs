//! Dead letters: the messages that a queue gave up on.

use jiff::Timestamp;
use rowmill_core::model::dead_letter::{self, DeadLetterKind};
use rowmill_core::words::Open;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A message that a queue gave up on, as it is stored and listed. It names the work, never its content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The queue's name for the message.
    pub message_id: String,
    /// The work it asked for.
    #[schema(value_type = DeadLetterKind)]
    pub about: Open<DeadLetterKind>,
    /// The job's attempt that it belonged to.
    #[schema(minimum = 1)]
    pub attempt: u32,
    /// The chunk it was about, if there was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub chunk: Option<DeadChunk>,
    /// When it was recorded.
    pub at: Timestamp,
}

/// The chunk of a dead letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadChunk {
    /// The number of its tally.
    pub tally: u32,
    /// Its place in the tally.
    pub index: u8,
    /// The row of its first item.
    #[schema(minimum = 1)]
    pub first_row: u64,
    /// How many items it has.
    pub items: u32,
}

impl From<dead_letter::DeadLetter> for DeadLetter {
    fn from(stored: dead_letter::DeadLetter) -> Self {
        let dead_letter::DeadLetter { message_id, about, attempt, chunk, at } = stored;
        let chunk = chunk.map(|dead_letter::DeadChunk { tally, index, first_row, items }| DeadChunk {
            tally,
            index,
            first_row,
            items,
        });
        Self { message_id, about, attempt, chunk, at }
    }
}

/// The dead letters of a job, oldest first. Of a job that has more than 1,000, any 1,000 are shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterList {
    /// The dead letters.
    pub dead_letters: Vec<DeadLetter>,
}
