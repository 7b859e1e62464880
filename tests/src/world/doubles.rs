//! The test doubles: every port in memory, as a test holds it.

use std::sync::Arc;

use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, SplitMessage};
use rowmill_core::wiring::{Port, Ports};
use rowmill_testing::in_memory::{
    CountingEntropy, InMemoryBreakers, InMemoryDeliveries, InMemoryJobStore, InMemoryObjects, InMemoryQueue,
    InMemoryQuotas, InMemoryRecordStore, InMemoryTasks, InMemoryUploadStore, InlineBatchRunner, ManualClock,
};

use crate::faults::{CrashingPort, Faults};
use crate::use_cases::without_priorities;

#[derive(Default)]
pub struct Doubles {
    pub jobs: Arc<InMemoryJobStore>,
    pub upload_rows: Arc<InMemoryUploadStore>,
    pub breakers: Arc<InMemoryBreakers>,
    pub quotas: Arc<InMemoryQuotas>,
    pub objects: Arc<InMemoryObjects>,
    pub records: Arc<InMemoryRecordStore>,
    /// The jobs queue.
    pub splits: Arc<InMemoryQueue<SplitMessage>>,
    pub starts: Arc<InMemoryQueue<SplitMessage>>,
    /// The items queue.
    pub chunks: Arc<InMemoryQueue<ChunkMessage>>,
    pub isolated: Arc<InMemoryQueue<ChunkMessage>>,
    pub lanes: Arc<InMemoryQueue<ChunkMessage>>,
    pub lane_deliveries: Arc<InMemoryDeliveries>,
    pub completions: Arc<InMemoryQueue<CompletionMessage>>,
    pub tasks: Arc<InMemoryTasks>,
    pub clock: Arc<ManualClock>,
    entropy: Arc<CountingEntropy>,
}

impl Doubles {
    pub fn ports(&self, type_limits: &JobTypeLimits) -> Ports {
        self.records.expire_by(self.clock.clone());
        let (lanes, chunks, isolated) = (self.lanes.clone(), self.chunks.clone(), self.isolated.clone());
        Ports {
            jobs: Port::given(self.jobs.clone()),
            uploads: Port::given(self.upload_rows.clone()),
            breakers: Port::given(self.breakers.clone()),
            outstanding: Port::given(self.quotas.clone()),
            records: Port::given(self.records.clone()),
            objects: Port::given(self.objects.clone()),
            multipart: Port::given(self.objects.clone()),
            transfers: Port::given(self.objects.clone()),
            erasures: Port::given(self.objects.clone()),
            lists: Port::given(self.objects.clone()),
            splits: Port::given(self.splits.clone()),
            starts: Port::given(self.starts.clone()),
            chunks: without_priorities(type_limits, lanes, chunks, isolated),
            lane_deliveries: Port::given(self.lane_deliveries.clone()),
            completions: Port::given(self.completions.clone()),
            tasks: Port::given(self.tasks.clone()),
            batches: Port::given(Arc::new(InlineBatchRunner)),
            clock: Port::given(self.clock.clone()),
            entropy: Port::given(self.entropy.clone()),
            type_limits: Port::given(Arc::new(type_limits.clone())),
            ..Ports::default()
        }
    }

    /// The ports of the functions behind the queues: each call can crash.
    pub fn crashing(&self, type_limits: &JobTypeLimits, faults: &Arc<Faults>) -> Ports {
        let objects = CrashingPort::new(self.objects.clone(), faults);
        let lanes = CrashingPort::new(self.lanes.clone(), faults);
        let chunks = CrashingPort::new(self.chunks.clone(), faults);
        let isolated = CrashingPort::new(self.isolated.clone(), faults);
        Ports {
            jobs: Port::given(CrashingPort::new(self.jobs.clone(), faults)),
            breakers: Port::given(CrashingPort::new(self.breakers.clone(), faults)),
            objects: Port::given(objects.clone()),
            multipart: Port::given(objects.clone()),
            erasures: Port::given(objects.clone()),
            lists: Port::given(objects),
            splits: Port::given(CrashingPort::new(self.splits.clone(), faults)),
            starts: Port::given(CrashingPort::new(self.starts.clone(), faults)),
            chunks: without_priorities(type_limits, lanes, chunks, isolated),
            completions: Port::given(CrashingPort::new(self.completions.clone(), faults)),
            tasks: Port::given(CrashingPort::new(self.tasks.clone(), faults)),
            records: Port::given(CrashingPort::new(self.records.clone(), faults)),
            ..self.ports(type_limits)
        }
    }
}
