//! Events in the model.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Number of chunks by tally.
pub(super) type Chunks = BTreeMap<u32, u64>;

pub(super) enum Event {
    /// The splitter begins the next tally.
    Split,
    /// The tally is cut, and what its receivers read is stored.
    Cut,
    /// The last tally is sent.
    SplitEnd,
    /// The messages of a tally are in the queue.
    Send { tally: u32, released_by: Option<u32> },
    /// An invocation has its messages.
    Begun { chunks: Chunks, items: Vec<u64> },
    /// The records of an invocation are ready.
    Write { chunks: Chunks, rows: u64, begun: f64 },
    /// So many chunks go on in another invocation.
    Continued { chunks: u64 },
    /// A worker has processed its chunks.
    Processed(Chunks),
    /// So many chunks of a tally are committed.
    Committed { tally: u32, chunks: u64 },
    /// A worker can take the next messages.
    Free,
    /// The queue may have another worker.
    Grow,
}

/// An event and when it happens.
pub(super) struct Timed {
    pub at: f64,
    /// Events of the same time happen in the order in which they were planned.
    pub number: u64,
    pub event: Event,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timed {}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.number.cmp(&other.number))
    }
}
