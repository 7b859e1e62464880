//! A chunk that was received on a lane of its job type.
//!
//! A lane is busy as long as its message is hidden. The queue hides a message for six time limits from when the poller
//! received it, and a throttled poller may invoke the function at the end of that time. Then the message would be
//! visible again, and the next one run, before this run has ended. So a run first hides its message until its
//! invocation has certainly ended. If the message has been visible since, the queue refuses that, and the chunk does
//! not run here. Such a delivery is used up without a run; `dead-letter` gives no chunk up that no run has begun.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::ports::{Clock, Deliveries};
use rowmill_settings::VISIBILITY_TIMEOUTS;

use crate::end::{ChunkEnd, RunError};

/// Time after its time limit at which an invocation has certainly ended.
const ENDED_AFTER: Duration = Duration::from_secs(5);

/// The deliveries of the lanes queue.
pub struct LaneHold {
    pub deliveries: Arc<dyn Deliveries>,
    pub clock: Arc<dyn Clock>,
}

impl LaneHold {
    /// Runs a chunk while the delivery of this receipt holds its lane. If the process dies, the lane is free a few
    /// seconds after the time limit of the invocation. If the run fails, the lane waits as long as other queues wait
    /// before they deliver again: what the run needs may be unavailable for a while.
    ///
    /// # Errors
    /// The chunk is to be delivered again, or has been.
    pub async fn during(
        &self,
        receipt: &str,
        deadline: Timestamp,
        run: impl Future<Output = Result<ChunkEnd, RunError>>,
    ) -> Result<ChunkEnd, RunError> {
        let time = Duration::try_from(deadline.duration_since(self.clock.now())).unwrap_or_default();
        self.deliveries.postpone(receipt, time + ENDED_AFTER).await?;
        let end = run.await;
        if end.is_err() {
            // If this fails too, the lane is free sooner.
            self.deliveries.postpone(receipt, time * VISIBILITY_TIMEOUTS).await.ok();
        }
        end
    }
}
