//! An inbox in memory, for the tests of this crate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use create_job::create::{CreateLimits, Creator};
use rowmill_core::callers::blocked::BlockCheck;
use rowmill_core::job_types::{JobTypes, Validate};
use rowmill_core::model::ids::Owner;
use rowmill_core::model::job::Job;
use rowmill_core::model::owner_priorities::OwnerPriorities;
use rowmill_core::ports::processor::JobType;
use rowmill_core::ports::{Ceilings, Clock, Objects};
use rowmill_core::wiring::{Port, Ports};
use rowmill_settings::{BucketSettings, OtherBuckets};
use rowmill_testing::in_memory::{
    CountingEntropy, InMemoryDeliveries, InMemoryJobStore, InMemoryObjects, InMemoryQueue, InMemoryQuotas,
    InMemoryRecordStore, InMemoryUploadStore, ManualClock,
};
use serde_json::{Value, json};

use crate::handler::Inbox;
use crate::limits::FileLimits;
use crate::notification::{Dropped, Notification};
use crate::receive::{Receiver, problem_key};

pub const BUCKET: &str = "files";

pub struct TestInbox {
    pub inbox: Inbox,
    pub jobs: Arc<InMemoryJobStore>,
    pub objects: Arc<InMemoryObjects>,
    pub deliveries: Arc<InMemoryDeliveries>,
    pub clock: Arc<ManualClock>,
    pub quotas: Arc<InMemoryQuotas>,
}

impl TestInbox {
    pub fn new() -> Self {
        Self::with_ceiling(20)
    }

    /// An inbox that allows an owner so many active jobs.
    pub fn with_ceiling(owner: u32) -> Self {
        let (jobs, objects) = (Arc::new(InMemoryJobStore::default()), Arc::new(InMemoryObjects::default()));
        let (clock, deliveries) = (Arc::new(ManualClock::default()), Arc::new(InMemoryDeliveries::default()));
        let quotas = Arc::new(InMemoryQuotas::default());
        let ports = Ports {
            jobs: Port::given(jobs.clone()),
            uploads: Port::given(Arc::new(InMemoryUploadStore::default())),
            objects: Port::given(objects.clone()),
            lists: Port::given(objects.clone()),
            outstanding: Port::given(quotas.clone()),
            records: Port::given(Arc::new(InMemoryRecordStore::default())),
            splits: Port::given(Arc::new(InMemoryQueue::default())),
            clock: Port::given(clock.clone()),
            entropy: Port::given(Arc::new(CountingEntropy::default())),
            type_limits: Port::given(Arc::default()),
            ..Ports::default()
        };
        let job_types = JobTypes::of([Arc::new(Validate) as Arc<dyn JobType>]);
        let ceilings = Ceilings { owner, job_type: 100, system: 200 };
        let limits = CreateLimits { ceilings, ..CreateLimits::default() };
        let buckets = OtherBuckets::of(BucketSettings::default(), BUCKET);
        let receiver = Receiver {
            creator: Creator::new(&ports, job_types, limits, OwnerPriorities::default(), buckets).expect("all ports"),
            blocked: BlockCheck::new(quotas.clone(), clock.clone()),
            limits: FileLimits { max_bytes: 1000, retention: Duration::from_secs(7 * 86_400) },
            default_owner: Owner("nobody".into()),
        };
        let inbox = Inbox { receiver, deliveries: deliveries.clone(), bucket: BUCKET.into() };
        Self { inbox, jobs, objects, deliveries, clock, quotas }
    }

    /// Drops a file with these notes. Returns the notification of the bucket, with this number as its sequence.
    pub fn drop_file(&self, key: &str, bytes: &str, notes: &[(&str, &str)], sequence: u32) -> Dropped {
        let notes: BTreeMap<_, _> = notes.iter().map(|(name, note)| ((*name).to_owned(), (*note).to_owned())).collect();
        let etag = self.objects.store(key, "text/csv", notes, bytes.to_owned().into());
        Dropped { key: key.to_owned(), etag, sequence: sequence.to_string(), at: self.clock.now() }
    }

    pub fn notification(&self, dropped: &Dropped) -> Notification {
        let object = json!({
            "key": dropped.key, "size": 1, "eTag": dropped.etag.trim_matches('"'), "sequencer": dropped.sequence,
        });
        let s3 = json!({ "bucket": { "name": BUCKET }, "object": object });
        let record = json!({ "eventTime": dropped.at, "eventName": "ObjectCreated:Put", "s3": s3 });
        serde_json::from_value(json!({ "Records": [record] })).unwrap()
    }

    pub fn every_job(&self) -> Vec<Job> {
        self.jobs.every_job()
    }

    /// The problem report for the file of this key.
    pub async fn problem(&self, key: &str) -> Value {
        let text = self.objects.read(&problem_key(key)).await.unwrap_or_else(|error| panic!("{key}: {error}"));
        serde_json::from_slice(&text).unwrap()
    }
}
