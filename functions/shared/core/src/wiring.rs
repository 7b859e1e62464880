//! Wiring: the ports that use cases are built from. In production the environment names their resources, in tests they
//! are given. Both build a use case with the same constructor.

use std::sync::Arc;

use crate::model::job_type_limits::JobTypeLimits;
use crate::model::messages::{ChunkMessage, CompletionMessage, FetchMessage, SplitMessage};
use crate::ports::{
    BatchRunner, Blocks, Breakers, Clock, Connections, Deliveries, DirectTransfers, Entropy, Events, JobStore,
    MultipartObjects, ObjectErasures, ObjectLists, Objects, OutstandingUploads, Queue, RecordStore, RequestCounts,
    Subscriptions, Tasks, Tickets, UploadStore,
};
use crate::sending::lane_router::LaneRouter;
use crate::sending::priority_router::PriorityRouter;

/// The ports of a function. A constructor takes those that its use case needs, and fails if one of them is missing.
#[derive(Clone, Default)]
pub struct Ports {
    pub jobs: Port<dyn JobStore>,
    pub uploads: Port<dyn UploadStore>,
    pub outstanding: Port<dyn OutstandingUploads>,
    pub blocks: Port<dyn Blocks>,
    pub request_counts: Port<dyn RequestCounts>,
    pub breakers: Port<dyn Breakers>,
    pub records: Port<dyn RecordStore>,
    pub objects: Port<dyn Objects>,
    pub multipart: Port<dyn MultipartObjects>,
    pub transfers: Port<dyn DirectTransfers>,
    pub erasures: Port<dyn ObjectErasures>,
    /// The files in external buckets.
    pub lists: Port<dyn ObjectLists>,
    /// Files to fetch.
    pub fetches: Port<dyn Queue<FetchMessage>>,
    pub fetch_deliveries: Port<dyn Deliveries>,
    /// Jobs to split.
    pub splits: Port<dyn Queue<SplitMessage>>,
    /// Jobs that wait.
    pub starts: Port<dyn Queue<SplitMessage>>,
    pub chunks: Port<ChunkQueues>,
    pub lane_deliveries: Port<dyn Deliveries>,
    /// Attempts to end.
    pub completions: Port<dyn Queue<CompletionMessage>>,
    /// The deliveries of files dropped into the bucket.
    pub inbox_deliveries: Port<dyn Deliveries>,
    pub events: Port<dyn Events>,
    pub tickets: Port<dyn Tickets>,
    pub connections: Port<dyn Connections>,
    pub subscriptions: Port<dyn Subscriptions>,
    pub tasks: Port<dyn Tasks>,
    pub batches: Port<dyn BatchRunner>,
    pub clock: Port<dyn Clock>,
    pub entropy: Port<dyn Entropy>,
    pub type_limits: Port<JobTypeLimits>,
}

/// A port, or the reason why there is none.
pub struct Port<P: ?Sized>(pub Result<Arc<P>, Missing>);

/// The environment does not name a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{variable} is not set; it must be {expected}")]
pub struct Missing {
    pub variable: &'static str,
    pub expected: &'static str,
}

impl<P: ?Sized> Port<P> {
    pub const fn given(port: Arc<P>) -> Self {
        Self(Ok(port))
    }

    /// The port on the resource of this name.
    pub fn on(name: Result<String, Missing>, adapter: impl FnOnce(String) -> Arc<P>) -> Self {
        Self(name.map(adapter))
    }

    pub fn get(&self) -> Result<Arc<P>, Missing> {
        self.0.clone()
    }
}

impl<P: ?Sized> Clone for Port<P> {
    fn clone(&self) -> Self {
        Self(self.get())
    }
}

impl<P: ?Sized> Default for Port<P> {
    fn default() -> Self {
        Self(Err(Missing { variable: "a port", expected: "given" }))
    }
}

/// The queues of chunks. A chunk of a job type that has lanes goes on one of them, whichever queue it is sent on.
pub struct ChunkQueues {
    pub items: Arc<PriorityRouter<ChunkMessage>>,
    /// Chunks to process one item at a time.
    pub isolated: Arc<dyn Queue<ChunkMessage>>,
}

impl ChunkQueues {
    pub fn new(
        limits: &JobTypeLimits,
        lanes: Arc<dyn Queue<ChunkMessage>>,
        items: PriorityRouter<ChunkMessage>,
        isolated: Arc<dyn Queue<ChunkMessage>>,
    ) -> Self {
        let routed = |queue| -> Arc<dyn Queue<ChunkMessage>> {
            Arc::new(LaneRouter { limits: limits.clone(), queue, lanes: Arc::clone(&lanes) })
        };
        let PriorityRouter { high, normal, low } = items;
        let items = PriorityRouter { high: routed(high), normal: routed(normal), low: low.map(&routed) };
        Self { items: Arc::new(items), isolated: routed(isolated) }
    }
}
