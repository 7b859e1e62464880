//! The checkpoint: the progress of a partly done chunk.
//!
//! A chunk gets a checkpoint when a run hands it over unfinished (its time was up), or when it is isolated (its message
//! became a dead letter). It moves by compare-and-swap on [`Checkpoint::rev`]. A run starts from one read of it and
//! commits the sum of that and its own work, so every possible winner of the chunk's commit is consistent in itself.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::ids::RunId;
use crate::model::tally::{ChunkAddress, Counts};

/// How many deaths of its process make an item poison.
pub const DEATHS_MAX: u32 = 2;

/// The progress of a chunk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// The chunk.
    pub chunk: ChunkAddress,
    /// How many times it has moved; 0 if the chunk has no checkpoint yet.
    pub rev: u32,
    /// The run that moved it last.
    pub by: Option<RunId>,
    /// How many of the chunk's items, from its first on, are done.
    pub done: u32,
    /// The done items by outcome.
    pub counts: Counts,
    /// The run whose run output holds their failures and outputs, if they have any.
    #[serde(rename = "segment")]
    pub run_output: Option<RunId>,
    /// Whether the chunk is isolated: the items that run are noted here before they run.
    pub isolated: bool,
    /// The running items of an isolated chunk.
    pub in_flight: Option<InFlight>,
    /// How many of the items failed as poison.
    pub poisoned: u32,
    /// When it last moved.
    pub at: Timestamp,
}

/// A note that the next items of an isolated chunk are running.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InFlight {
    /// Until when the run that wrote the note may be alive.
    pub until: Timestamp,
    /// How many runs had died on the item before, if it is one alone.
    pub deaths: u32,
    /// How many items, from the first one that is not done.
    #[serde(default = "InFlight::one_item")]
    pub items: u32,
}

impl InFlight {
    /// What a note without a number means: earlier versions ran all items alone.
    const fn one_item() -> u32 {
        1
    }
}

impl Checkpoint {
    /// The initial checkpoint of a chunk.
    pub fn blank(chunk: ChunkAddress, at: Timestamp) -> Self {
        Self {
            chunk,
            rev: 0,
            by: None,
            done: 0,
            counts: Counts::default(),
            run_output: None,
            isolated: false,
            in_flight: None,
            poisoned: 0,
            at,
        }
    }

    /// This checkpoint, moved by `run` at `at`.
    #[must_use]
    pub fn moved(&self, run: RunId, at: Timestamp) -> Self {
        Self { rev: self.rev + 1, by: Some(run), at, ..self.clone() }
    }

    /// Whether a run that noted its items here may still be alive.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.in_flight.is_some_and(|note| note.until > now)
    }
}
