//! A chunk that was received on a lane of its job type.
//!
//! A lane is busy as long as its message is hidden. The queue hides a message for six time limits from when the poller
//! received it, and a throttled poller may invoke the function at the end of that time. Then the message would be visible
//! again, and the next one run, before this run has ended. So a run first hides its message until its invocation has
//! certainly ended. If the message has been visible since, the queue refuses that, and the chunk does not run here.

use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_settings::VISIBILITY_TIMEOUTS;

use crate::invocation::Invocation;
use crate::process::{ChunkEnd, ChunkProcessor};
use crate::run::RunError;

/// Time after its time limit at which an invocation has certainly ended.
const ENDED_AFTER: Duration = Duration::from_secs(5);

impl ChunkProcessor {
    /// As [`process`](Self::process), for a message that was received on a lane, with the receipt of its delivery. If the
    /// process dies, the lane is free a few seconds after the time limit of the invocation. If the run fails, the lane waits
    /// as long as other queues wait before they deliver again: what the run needs may be unavailable for a while.
    ///
    /// # Errors
    /// The chunk is to be delivered again, or has been.
    pub async fn process_on_lane(
        &self,
        receipt: &str,
        message: &ChunkMessage,
        redelivered: bool,
        deadline: Timestamp,
        invocation: &Invocation,
    ) -> Result<ChunkEnd, RunError> {
        let time = Duration::try_from(deadline.duration_since(self.clock.now())).unwrap_or_default();
        self.lane_deliveries.postpone(receipt, time + ENDED_AFTER).await?;
        let end = self.process(message, redelivered, deadline, invocation).await;
        if end.is_err() {
            // If this fails too, the lane is free sooner.
            self.lane_deliveries.postpone(receipt, time * VISIBILITY_TIMEOUTS).await.ok();
        }
        end
    }
}
