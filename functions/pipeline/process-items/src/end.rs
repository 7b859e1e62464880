//! The ends of a delivery of a chunk.

use jiff::Timestamp;
use rowmill_core::items::input::InputError;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::tally::{Counts, Tally};
use rowmill_core::ports::PortError;
use rowmill_core::ports::processor::ItemError;

/// Result of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkEnd {
    /// This run's commit counts.
    Committed(Counts),
    /// The chunk had been committed before.
    Repeated,
    /// The chunk is done in part. A message for the next run is sent.
    Continued,
    /// The job is gone, has ended, or is in another attempt.
    Past,
    /// The job [drops](rowmill_core::model::job::Job::drops) the message: a resume has the chunk sent again.
    Dropped,
    /// Workers or a service process the chunk, and its task says where.
    Offered,
    /// Its job type has lanes, and the message was received beside them. It is sent on one of them.
    Rerouted,
}

/// The end of a delivery: the writes that conclude it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Conclusion {
    /// Nothing is written.
    End(ChunkEnd),
    /// The message returns to its queue, for this reason.
    GiveBack(&'static str),
    /// The chunk was committed before: the steps that follow its commit are repeated.
    Repeat(Box<Tally>),
    /// Every item has an outcome, and the chunk is committed.
    Commit,
    /// The job is stopped: finished items keep their outcomes, the rest is skipped, and the chunk is committed.
    Skip,
    /// The checkpoint records what is done, and a message for the next run is sent.
    HandOver,
    /// The chunk is a task from now on, which is looked at from this time on.
    Offer(Timestamp),
    /// A message of the chunk is sent.
    Send(Box<ChunkMessage>, ChunkEnd),
}

impl Conclusion {
    /// The chunk continues with another message of this mode.
    pub fn continued(message: &ChunkMessage, delivery_mode: DeliveryMode) -> Self {
        Self::Send(Box::new(ChunkMessage { delivery_mode, ..message.clone() }), ChunkEnd::Continued)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Input(#[from] InputError),
    /// Items kept failing with transient errors: the chunk returns to its queue, unless the breaker holds its job back.
    #[error("the chunk returns to its queue: {open} items still fail: {error}")]
    StillFailing {
        /// Number of items of the batch.
        open: usize,
        /// The error of the last of them.
        error: ItemError,
    },
    /// No item was done in time: the chunk returns to its queue.
    #[error("the chunk returns to its queue: {0}")]
    TryAgain(String),
    /// The processor of an item holds its thread.
    #[error("the item of row {row} holds its thread")]
    Held { row: u64 },
    #[error(transparent)]
    Port(#[from] PortError),
}
