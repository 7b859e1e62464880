//! One run at a chunk.

use std::sync::Arc;

use jiff::Timestamp;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::progress::commit::joint_commits::Seat;

use crate::neighbours::SharedRead;
use crate::watch::JobWatch;

/// One run at a chunk: its message, and its time.
pub(crate) struct Delivery<'a> {
    pub message: &'a ChunkMessage,
    pub redelivered: bool,
    pub run: RunId,
    pub began: Timestamp,
    /// The invocation's time limit, less the margin.
    pub time_limit: Timestamp,
    pub watch: &'a JobWatch,
    /// Commits its chunk, together with others of the invocation.
    pub seat: Seat<'a>,
    /// The chunk's checkpoint; blank if it has none, or if the message is its first delivery.
    pub checkpoint: Checkpoint,
    /// The read that the chunk shares with its neighbours.
    pub shared: Option<Arc<SharedRead>>,
}
