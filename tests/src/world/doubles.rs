//! The test doubles: every port in memory, as a test holds it.

use std::sync::Arc;

use rowmill_core::in_memory::{
    CountingEntropy, InMemoryBreakers, InMemoryDeliveries, InMemoryJobStore, InMemoryObjects, InMemoryQueue,
    InMemoryQuotas, InMemoryRecordStore, InMemoryUploadStore, InlineBatchRunner, ManualClock,
};
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, SplitMessage};

use crate::faults::{CrashingPort, Faults};
use crate::use_cases::Ports;

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
    /// The items queue.
    pub chunks: Arc<InMemoryQueue<ChunkMessage>>,
    pub isolated: Arc<InMemoryQueue<ChunkMessage>>,
    pub lanes: Arc<InMemoryQueue<ChunkMessage>>,
    pub lane_deliveries: Arc<InMemoryDeliveries>,
    pub completions: Arc<InMemoryQueue<CompletionMessage>>,
    pub clock: Arc<ManualClock>,
    entropy: Arc<CountingEntropy>,
}

impl Doubles {
    pub fn ports(&self) -> Ports {
        Ports {
            jobs: self.jobs.clone(),
            uploads: self.upload_rows.clone(),
            breakers: self.breakers.clone(),
            outstanding: self.quotas.clone(),
            records: self.records.clone(),
            objects: self.objects.clone(),
            multipart: self.objects.clone(),
            transfers: self.objects.clone(),
            splits: self.splits.clone(),
            chunks: self.chunks.clone(),
            isolated: self.isolated.clone(),
            lanes: self.lanes.clone(),
            lane_deliveries: self.lane_deliveries.clone(),
            completions: self.completions.clone(),
            batches: Arc::new(InlineBatchRunner),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        }
    }

    /// The ports of the functions behind the queues: each call can crash.
    pub fn crashing(&self, faults: &Arc<Faults>) -> Ports {
        let objects = CrashingPort::new(self.objects.clone(), faults);
        Ports {
            jobs: CrashingPort::new(self.jobs.clone(), faults),
            breakers: CrashingPort::new(self.breakers.clone(), faults),
            objects: objects.clone(),
            multipart: objects,
            splits: CrashingPort::new(self.splits.clone(), faults),
            chunks: CrashingPort::new(self.chunks.clone(), faults),
            isolated: CrashingPort::new(self.isolated.clone(), faults),
            lanes: CrashingPort::new(self.lanes.clone(), faults),
            completions: CrashingPort::new(self.completions.clone(), faults),
            ..self.ports()
        }
    }
}
