//! The use cases of all functions over gated ports.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use cancel_job::cancel::Canceller;
use complete_job::complete::Completer;
use complete_job::compose::Composer;
use create_job::create::{CreateLimits, Creator};
use dead_letter::settle::DeadLetters;
use jiff::Timestamp;
use process_items::prepared::PreparedJobs;
use process_items::process::ChunkProcessor;
use process_items::run::RunLimits;
use redrive_job::redrive::{RedriveLimits, Redriver};
use rowmill_aws::settings::{Deadlines, Recovery};
use rowmill_core::in_memory::{InMemoryJobStore, InMemoryObjects, InMemoryRecordStore, InMemoryUploadStore};
use rowmill_core::job_types::JobTypes;
use rowmill_core::ports::processor::JobType;
use rowmill_core::ports::{Clock, Entropy, JobStore, Objects, UploadStore};
use rowmill_core::progress::JobSteps;
use rowmill_core::text::ChunkLimits;
use split_job::split::{SplitLimits, Splitter};
use sweep::sweep::{SweepLimits, Sweeper};

use super::broken::Broken;
use super::clock::{SeededEntropy, VirtualClock};
use super::gate_jobs::GatedJobs;
use super::gate_objects::{GatedObjects, GatedUploads};
use super::hub::Hub;
use super::invariants::Invariants;
use super::items::Simulated;
use super::plan::{BACKOFF_MAX, GRACE, LEASE, MARGIN, PATIENCE, Plan, SWEEP_TIME, visibility};
use super::queues::{QueueLimits, QueueName, Queues};
use super::trace::Trace;

/// Three days: no job ends by its deadline where it should end by itself.
const DEADLINE_SECONDS: u64 = 3 * 86_400;

/// How long a job is kept: longer than any run lasts.
const RETENTION: Duration = Duration::from_secs(30 * 86_400);

/// Everything there is.
pub struct World {
    /// What the gates share.
    pub hub: Hub,
    /// The jobs' rows, without a gate.
    pub store: Arc<InMemoryJobStore>,
    /// The bucket, without a gate.
    pub bucket: Arc<InMemoryObjects>,
    /// The uploads' rows, without a gate.
    pub upload_rows: Arc<InMemoryUploadStore>,
    /// The queues.
    pub queues: Queues,
    /// What must hold.
    pub invariants: Arc<Invariants>,
    /// The gate before the jobs' rows.
    pub jobs: Arc<GatedJobs>,
    /// `create-job`.
    pub creator: Arc<Creator>,
    /// `cancel-job`.
    pub canceller: Arc<Canceller>,
    /// `redrive-job`.
    pub redriver: Arc<Redriver>,
    /// `split-job`.
    pub splitter: Arc<Splitter>,
    /// `complete-job`.
    pub completer: Arc<Completer>,
    /// `dead-letter`.
    pub dead_letters: Arc<DeadLetters>,
    /// `sweep`.
    pub sweeper: Arc<Sweeper>,
    /// What `process-items` is made from, for each of its processes anew.
    processing: Processing,
}

struct Processing {
    ports: Ports,
    job_types: JobTypes,
    limits: RunLimits,
}

#[derive(Clone)]
struct Ports {
    jobs: Arc<GatedJobs>,
    objects: Arc<GatedObjects>,
    uploads: Arc<GatedUploads>,
    clock: Arc<VirtualClock>,
    entropy: Arc<SeededEntropy>,
    queues: Queues,
    hub: Hub,
    invariants: Arc<Invariants>,
}

impl Ports {
    fn jobs(&self) -> Arc<dyn JobStore> {
        self.jobs.clone()
    }

    fn objects(&self) -> Arc<dyn Objects> {
        self.objects.clone()
    }

    fn uploads(&self) -> Arc<dyn UploadStore> {
        self.uploads.clone()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    fn entropy(&self) -> Arc<dyn Entropy> {
        self.entropy.clone()
    }

    fn queue(&self, queue: QueueName) -> Arc<super::queues::QueuePort> {
        self.queues.port(queue, &self.hub, &self.invariants)
    }

    fn job_steps(&self) -> JobSteps {
        let (chunks, completions) = (self.queue(QueueName::Items), self.queue(QueueName::Completions));
        JobSteps::new(self.jobs(), self.objects(), chunks, completions, self.clock())
    }
}

impl World {
    /// The world of this plan.
    pub fn new(plan: &Plan, seed: u64, broken: Broken, began: Timestamp, trace: Trace) -> Self {
        let hub = Hub::new(began, trace);
        let store = Arc::new(InMemoryJobStore::default());
        let bucket = Arc::new(InMemoryObjects::default());
        let upload_rows = Arc::new(InMemoryUploadStore::default());
        let invariants = Arc::new(Invariants::new(store.clone(), bucket.clone(), plan.ceilings));
        let queues = Queues::new(QueueLimits { max_receives: plan.max_receives, visibility });
        let jobs = Arc::new(GatedJobs {
            store: store.clone(),
            hub: hub.clone(),
            invariants: invariants.clone(),
            broken,
            old_index: Mutex::default(),
        });
        let objects = GatedObjects { store: bucket.clone(), hub: hub.clone(), invariants: invariants.clone() };
        let ports = Ports {
            jobs: jobs.clone(),
            objects: Arc::new(objects),
            uploads: Arc::new(GatedUploads { store: upload_rows.clone(), hub: hub.clone() }),
            clock: Arc::new(VirtualClock(hub.clone())),
            entropy: Arc::new(SeededEntropy::new(seed)),
            queues: queues.clone(),
            hub: hub.clone(),
            invariants: invariants.clone(),
        };
        let simulated = Simulated::new(hub.clone(), invariants.clone(), plan.items);
        let job_types = JobTypes::of([Arc::new(simulated) as Arc<dyn JobType>]);
        Self {
            creator: Arc::new(creator(&ports, &job_types, plan)),
            canceller: Arc::new(Canceller { jobs: ports.jobs(), clock: ports.clock() }),
            redriver: Arc::new(redriver(&ports, plan)),
            splitter: Arc::new(splitter(&ports, plan)),
            completer: Arc::new(completer(&ports)),
            dead_letters: Arc::new(dead_letters(&ports)),
            sweeper: Arc::new(sweeper(&ports, plan)),
            processing: Processing { limits: run_limits(plan), job_types, ports },
            hub,
            store,
            bucket,
            upload_rows,
            queues,
            invariants,
            jobs,
        }
    }

    /// A new process of `process-items`.
    pub fn processor(&self) -> ChunkProcessor {
        let Processing { ports, job_types, limits } = &self.processing;
        ChunkProcessor {
            jobs: ports.jobs(),
            objects: ports.objects(),
            chunks: ports.queue(QueueName::Items),
            isolated: ports.queue(QueueName::Isolate),
            steps: ports.job_steps(),
            clock: ports.clock(),
            entropy: ports.entropy(),
            prepared: PreparedJobs::new(ports.jobs(), job_types.clone()),
            limits: *limits,
        }
    }
}

// A further limit keeps its default here.
#[allow(clippy::needless_update)]
fn run_limits(plan: &Plan) -> RunLimits {
    RunLimits {
        transient_retries: plan.transient_retries,
        backoff: Duration::from_millis(100),
        margin: MARGIN,
        poison_max: plan.poison_max,
        output_max_bytes: 1 << 20,
        ..RunLimits::default()
    }
}

fn creator(ports: &Ports, job_types: &JobTypes, plan: &Plan) -> Creator {
    Creator {
        jobs: ports.jobs(),
        uploads: ports.uploads(),
        objects: ports.objects(),
        splits: ports.queue(QueueName::Splits),
        job_types: job_types.clone(),
        clock: ports.clock(),
        entropy: ports.entropy(),
        limits: CreateLimits {
            chunks: ChunkLimits { max_items: plan.chunk_items, max_bytes: 1 << 16, max_record_bytes: 1 << 16 },
            ceilings: plan.ceilings,
            header_max_bytes: 1 << 16,
            deadlines: Deadlines { default_seconds: DEADLINE_SECONDS, maximum_seconds: DEADLINE_SECONDS },
            recovery: Recovery { stale: plan.stale },
            ..CreateLimits::default()
        },
    }
}

fn redriver(ports: &Ports, plan: &Plan) -> Redriver {
    Redriver {
        jobs: ports.jobs(),
        uploads: ports.uploads(),
        objects: ports.objects(),
        splits: ports.queue(QueueName::Splits),
        clock: ports.clock(),
        entropy: ports.entropy(),
        limits: RedriveLimits {
            ceilings: plan.ceilings,
            deadlines: Deadlines { default_seconds: DEADLINE_SECONDS, maximum_seconds: DEADLINE_SECONDS },
            recovery: Recovery { stale: plan.stale },
            corrected_max_bytes: 1 << 20,
            ..RedriveLimits::default()
        },
    }
}

fn splitter(ports: &Ports, plan: &Plan) -> Splitter {
    Splitter {
        jobs: ports.jobs(),
        objects: ports.objects(),
        records: Arc::new(InMemoryRecordStore::default()),
        chunks: ports.queue(QueueName::Items),
        splits: ports.queue(QueueName::Splits),
        steps: ports.job_steps(),
        clock: ports.clock(),
        entropy: ports.entropy(),
        limits: SplitLimits {
            range_bytes: plan.range_bytes,
            timeout: LEASE.saturating_sub(MARGIN),
            margin: MARGIN,
            ..SplitLimits::default()
        },
    }
}

fn completer(ports: &Ports) -> Completer {
    Completer {
        jobs: ports.jobs(),
        clock: ports.clock(),
        entropy: ports.entropy(),
        composer: Composer {
            jobs: ports.jobs(),
            objects: ports.objects(),
            multipart: ports.objects.clone(),
            clock: ports.clock(),
            unprocessed_max_bytes: 1 << 20,
            part_bytes: 100,
            packed: rowmill_formats::Limits::default(),
        },
        completions: ports.queue(QueueName::Completions),
        margin: MARGIN,
        lease: LEASE,
        retention: RETENTION,
    }
}

fn dead_letters(ports: &Ports) -> DeadLetters {
    DeadLetters {
        jobs: ports.jobs(),
        objects: ports.objects(),
        isolated: ports.queue(QueueName::Isolate),
        steps: ports.job_steps(),
        clock: ports.clock(),
        entropy: ports.entropy(),
        patience: PATIENCE,
        completion_patience: visibility(QueueName::Completions) + LEASE,
        lease: LEASE,
        retention: RETENTION,
    }
}

// A further limit keeps its default here.
#[allow(clippy::needless_update)]
fn sweeper(ports: &Ports, plan: &Plan) -> Sweeper {
    Sweeper {
        jobs: ports.jobs(),
        objects: ports.objects(),
        splits: ports.queue(QueueName::Splits),
        chunks: ports.queue(QueueName::Items),
        isolated: ports.queue(QueueName::Isolate),
        steps: ports.job_steps(),
        clock: ports.clock(),
        entropy: ports.entropy(),
        limits: SweepLimits {
            recovery: Recovery { stale: plan.stale },
            grace: GRACE,
            jobs_max: plan.sweep_jobs_max,
            time: SWEEP_TIME,
            tallies_max: plan.tallies_max,
            backoff_max: BACKOFF_MAX,
            ..SweepLimits::default()
        },
    }
}
