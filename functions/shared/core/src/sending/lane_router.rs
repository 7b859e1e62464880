//! Sends chunks on the lanes of their job types.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::model::job_type_limits::JobTypeLimits;
use crate::model::lanes::lane_of;
use crate::model::messages::ChunkMessage;
use crate::ports::{PortError, Queue};

/// A queue of chunks, with the lanes beside it: a chunk of a job type with `concurrency` goes on a lane, any other to
/// the queue. All senders of chunks use it, so no chunk of such a type gets past its lanes.
pub struct LaneRouter {
    pub limits: JobTypeLimits,
    /// The queue of all other chunks: the items or the isolate queue.
    pub queue: Arc<dyn Queue<ChunkMessage>>,
    pub lanes: Arc<dyn Queue<ChunkMessage>>,
}

#[async_trait]
impl Queue<ChunkMessage> for LaneRouter {
    async fn send_later(&self, messages: &[ChunkMessage], delay: Duration) -> Result<(), PortError> {
        let routed =
            messages.iter().map(|message| ChunkMessage { lane: lane_of(&self.limits, message), ..message.clone() });
        let (on_lanes, others): (Vec<_>, Vec<_>) = routed.partition(|message| message.lane.is_some());
        if !others.is_empty() {
            self.queue.send_later(&others, delay).await?;
        }
        if !on_lanes.is_empty() {
            self.lanes.send_later(&on_lanes, delay).await?;
        }
        Ok(())
    }

    /// The messages that wait in the queue and on all lanes.
    async fn backlog(&self) -> Result<u64, PortError> {
        let queued = self.queue.backlog().await?;
        // Most stacks have no lanes, and a request costs.
        let on_lanes = if self.limits.have_concurrency() { self.lanes.backlog().await? } else { 0 };
        Ok(queued + on_lanes)
    }
}
