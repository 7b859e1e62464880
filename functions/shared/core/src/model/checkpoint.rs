//! The checkpoint: the progress of a partly done chunk.
//!
//! A chunk gets a checkpoint when a run hands it over unfinished (its time was up), or when it is isolated (its message
//! became a dead letter). It moves by compare-and-swap on [`Checkpoint::rev`]. A run starts from one read of it and
//! commits the sum of that and its own work, so every possible winner of the chunk's commit is consistent in itself.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::ids::RunId;
use crate::model::tally::{ChunkAddress, Counts};

/// Number of deaths of its process that make an item poison.
pub const DEATHS_MAX: u32 = 2;

/// Number of deliveries with a transient error of one item alone after which the item fails and its chunk continues.
/// One less once an item of the chunk was passed over.
pub const FAILURES_MAX: u32 = 3;

/// The progress of a chunk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    pub chunk: ChunkAddress,
    /// Number of moves; 0 if the chunk has no checkpoint yet.
    pub rev: u32,
    /// The run that moved it last.
    pub by: Option<RunId>,
    /// Number of the chunk's items, from its first on, that are done.
    pub done: u32,
    /// The done items by outcome.
    pub counts: Counts,
    /// The run whose run output holds their failures and outputs, if they have any.
    pub run_output: Option<RunId>,
    /// True if the chunk is isolated: the items that run are noted here before they run.
    pub isolated: bool,
    /// The running items of an isolated chunk.
    pub in_flight: Option<InFlight>,
    /// The items that run in small parts, because runs have died on them or had no time for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspects: Option<Suspects>,
    /// Number of items that failed so that the chunk could continue: as poison, or after [`FAILURES_MAX`] transient
    /// errors.
    pub passed_over: u32,
    /// The epoch of the message whose run has begun since the last fresh message of the isolated chunk. If none of this
    /// message has, its deliveries were used up without one: invocations were throttled, or came too late for their
    /// lane.
    pub begun: Option<u32>,
    /// When it last moved.
    pub at: Timestamp,
}

/// A note that the next items of an isolated chunk are running.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InFlight {
    /// Until when the run that wrote the note may be alive.
    pub until: Timestamp,
    /// Number of runs that had died on the item before, if it is one alone.
    pub deaths: u32,
    /// Number of items, from the first one that is not done.
    pub items: u32,
    /// True if the holder is a [worker](crate::model::task) that has not said that it has begun. Then it cannot die on
    /// them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfirmed: bool,
}

impl InFlight {
    /// A note of a run of `process-items`.
    pub const fn of_run(until: Timestamp, deaths: u32, items: u32) -> Self {
        Self { until, deaths, items, unconfirmed: false }
    }
}

/// In how many parts items are run again that did not end together.
const PARTS: u32 = 16;

/// Items of an isolated chunk of which some may be poison: those that are not done, up to a place in the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspects {
    /// Their end: how many of the chunk's items come before it.
    pub until: u32,
    /// Number of them that run together.
    pub part: u32,
    /// Number of items that run together beyond them, if a whole batch took too long.
    pub beyond: Option<u32>,
    /// Number of runs that have died on the first one while it ran alone.
    pub deaths: u32,
    /// Number of runs in which the first one failed alone with a transient error.
    pub failures: u32,
}

impl Suspects {
    /// So many items behind the `done` ones, which did not end together.
    pub fn after(done: u32, items: u32) -> Self {
        Self { until: done.saturating_add(items), part: (items / PARTS).max(1), beyond: None, deaths: 0, failures: 0 }
    }

    /// True if they say anything about the items behind the `done` ones.
    pub const fn concern(&self, done: u32) -> bool {
        self.until > done || self.beyond.is_some()
    }

    /// Number of the items behind the `done` ones that run together, if fewer than a batch.
    pub fn together(&self, done: u32) -> Option<u32> {
        match self.until.saturating_sub(done) {
            0 => self.beyond,
            left => Some(self.part.min(left)),
        }
    }
}

impl Checkpoint {
    /// Suspects among the next items, as the runs before tell, if no run is at them any more. A note that is still
    /// there is a death of its items.
    pub fn known_suspects(&self) -> Option<Suspects> {
        let known = self.suspects.filter(|suspects| suspects.concern(self.done));
        let beyond = known.and_then(|suspects| suspects.beyond);
        match self.in_flight {
            None | Some(InFlight { unconfirmed: true, .. }) => known,
            Some(note) if note.items > 1 => Some(Suspects { beyond, ..Suspects::after(self.done, note.items) }),
            Some(note) => {
                let known = known.unwrap_or(Suspects::after(self.done, 1));
                Some(Suspects { deaths: note.deaths + 1, ..known })
            }
        }
    }

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
            suspects: None,
            passed_over: 0,
            begun: None,
            at,
        }
    }

    #[must_use]
    pub fn moved(&self, run: RunId, at: Timestamp) -> Self {
        Self { rev: self.rev + 1, by: Some(run), at, ..self.clone() }
    }

    /// True if a run that noted its items here may still be alive.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.in_flight.is_some_and(|note| note.until > now)
    }
}
