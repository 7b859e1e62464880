//! The use cases of all functions over gated ports.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cancel_job::change::Changer;
use complete_job::complete::Completer;
use complete_job::limits::CompleteLimits;
use create_job::create::{CreateLimits, Creator};
use dead_letter::limits::DeadLetterLimits;
use dead_letter::settle::DeadLetters;
use jiff::Timestamp;
use process_items::process::ChunkProcessor;
use process_items::run::RunLimits;
use redrive_job::redrive::{RedriveLimits, Redriver};
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::job::{LEASE_MARGIN, Priority};
use rowmill_core::model::owner_priorities::OwnerPriorities;
use rowmill_core::ports::processor::JobType;
use rowmill_core::progress::waits::Waker;
use rowmill_core::sending::priority_router::PriorityRouter;
use rowmill_core::text::ChunkLimits;
use rowmill_core::wiring::{ChunkQueues, Port, Ports};
use rowmill_settings::{CompleteTime, Deadlines, Recovery, SplitTime, StopGrace, TimeLimits};
use rowmill_testing::in_memory::{
    InMemoryBreakers, InMemoryJobStore, InMemoryObjects, InMemoryQuotas, InMemoryRecordStore, InMemoryTasks,
    InMemoryUploadStore,
};
use split_job::split::{SplitLimits, Splitter};
use start_job::starter::Starter;
use sweep::sweep::{SweepLimits, Sweeper};
use work_task::lend::TaskWork;

use super::batches::{Holds, ITEM_TIMEOUT, SimulatedBatches};
use super::broken::Broken;
use super::clock::{SeededEntropy, VirtualClock};
use super::gate_breakers::GatedBreakers;
use super::gate_jobs::GatedJobs;
use super::gate_objects::{GatedObjects, GatedUploads};
use super::gate_tasks::GatedTasks;
use super::hub::Hub;
use super::invariants::Invariants;
use super::items::Simulated;
use super::plan::{BACKOFF_MAX, GRACE, LEASE, LONGEST_PAUSE, MARGIN, PATIENCE, Plan, SWEEP_TIME, TIMEOUT, visibility};
use super::queues::{QueueLimits, QueueName, Queues};
use super::trace::Trace;
use crate::use_cases::{Limits, UseCases};

/// Three days, so that only jobs with a deadline of their own end by it.
pub const DEADLINE_SECONDS: u64 = 3 * 86_400;

/// The whole pipeline, with the simulation between the functions and their ports.
pub struct World {
    /// The state that the gates share.
    pub hub: Hub,
    /// The jobs' rows, without a gate.
    pub store: Arc<InMemoryJobStore>,
    /// The bucket, without a gate.
    pub bucket: Arc<InMemoryObjects>,
    /// The uploads' rows, without a gate.
    pub upload_rows: Arc<InMemoryUploadStore>,
    /// The tasks table, without a gate.
    pub tasks: Arc<InMemoryTasks>,
    pub task_work: Arc<TaskWork>,
    /// The items as workers process them.
    pub worked: Simulated,
    pub queues: Queues,
    /// The items that hold a thread.
    pub holds: Holds,
    pub invariants: Arc<Invariants>,
    pub jobs: Arc<GatedJobs>,
    pub creator: Arc<Creator>,
    pub changer: Arc<Changer>,
    pub redriver: Arc<Redriver>,
    pub splitter: Arc<Splitter>,
    pub starter: Arc<Starter>,
    pub completer: Arc<Completer>,
    pub dead_letters: Arc<DeadLetters>,
    pub sweeper: Arc<Sweeper>,
    /// `fetch-file` and `announce-job`, as far as they start jobs that wait.
    pub waker: Arc<Waker>,
    /// Makes a use case for each new process of `process-items`.
    use_cases: UseCases,
}

impl World {
    pub fn new(plan: &Plan, seed: u64, broken: Broken, began: Timestamp, trace: Trace) -> Self {
        let hub = Hub::new(began, trace);
        let store = Arc::new(InMemoryJobStore::default());
        let bucket = Arc::new(InMemoryObjects::default());
        let upload_rows = Arc::new(InMemoryUploadStore::default());
        let tasks = Arc::new(InMemoryTasks::default());
        let (ceilings, type_limits) = (plan.ceilings, plan.type_limits.clone());
        let invariants = Arc::new(Invariants::new(store.clone(), bucket.clone(), tasks.clone(), ceilings, type_limits));
        let queues = Queues::new(QueueLimits { max_receives: plan.max_receives, visibility, broken });
        let jobs = Arc::new(GatedJobs {
            store: store.clone(),
            hub: hub.clone(),
            invariants: invariants.clone(),
            broken,
            queues: queues.clone(),
            old_index: Mutex::default(),
        });
        let objects = GatedObjects { store: bucket.clone(), hub: hub.clone(), invariants: invariants.clone() };
        let objects = Arc::new(objects);
        let holds = Holds::default();
        let port = |queue| queues.port(queue, &hub, &invariants);
        let high = if broken == Broken::PriorityForgotten { Priority::Normal } else { Priority::High };
        let skew = if broken == Broken::ClocksDiffer { Duration::from_secs(120) } else { plan.skew };
        let breakers = GatedBreakers {
            store: Arc::new(InMemoryBreakers::default()),
            hub: hub.clone(),
            invariants: invariants.clone(),
            limits: plan.breaker,
            broken,
        };
        let items = PriorityRouter {
            high: port(QueueName::Items(high)),
            normal: port(QueueName::Items(Priority::Normal)),
            low: Some(port(QueueName::Items(Priority::Low))),
        };
        let splits = PriorityRouter {
            high: port(QueueName::Splits(Priority::High)),
            normal: port(QueueName::Splits(Priority::Normal)),
            low: None,
        };
        let (lanes, isolated) = (port(QueueName::Lanes), port(QueueName::Isolate));
        let chunks = ChunkQueues::new(&plan.type_limits, lanes, items, isolated);
        let ports = Ports {
            jobs: Port::given(jobs.clone()),
            breakers: Port::given(Arc::new(breakers)),
            outstanding: Port::given(Arc::new(InMemoryQuotas::default())),
            uploads: Port::given(Arc::new(GatedUploads { store: upload_rows.clone(), hub: hub.clone() })),
            records: Port::given(Arc::new(InMemoryRecordStore::default())),
            objects: Port::given(objects.clone()),
            multipart: Port::given(objects),
            transfers: Port::given(bucket.clone()),
            erasures: Port::given(bucket.clone()),
            lists: Port::given(bucket.clone()),
            splits: Port::given(Arc::new(splits)),
            starts: Port::given(port(QueueName::Starts)),
            chunks: Port::given(Arc::new(chunks)),
            lane_deliveries: Port::given(queues.lane_deliveries(&hub)),
            completions: Port::given(port(QueueName::Completions)),
            tasks: Port::given(Arc::new(GatedTasks {
                store: tasks.clone(),
                hub: hub.clone(),
                invariants: invariants.clone(),
            })),
            batches: Port::given(Arc::new(SimulatedBatches { hub: hub.clone(), holds: holds.clone() })),
            clock: Port::given(Arc::new(VirtualClock { hub: hub.clone(), skew })),
            entropy: Port::given(Arc::new(SeededEntropy::new(seed))),
            type_limits: Port::given(Arc::new(plan.type_limits.clone())),
            ..Ports::default()
        };
        let simulated =
            Simulated::new(hub.clone(), invariants.clone(), plan.items, holds.clone(), plan.outage_from(began));
        let worked = simulated.worked(super::workers::terms(plan));
        let types = [simulated.laned(), worked.clone(), simulated];
        let job_types = JobTypes::of(types.map(|job_type| Arc::new(job_type) as Arc<dyn JobType>));
        let use_cases = UseCases { ports, limits: limits(plan, broken), job_types };
        Self {
            creator: Arc::new(Creator { owner_priorities: every_priority(), ..use_cases.creator() }),
            changer: Arc::new(use_cases.changer()),
            redriver: Arc::new(use_cases.redriver()),
            splitter: Arc::new(use_cases.splitter()),
            starter: Arc::new(use_cases.starter()),
            completer: Arc::new(use_cases.completer()),
            dead_letters: Arc::new(use_cases.dead_letters()),
            sweeper: Arc::new(use_cases.sweeper()),
            waker: Arc::new(use_cases.waker()),
            task_work: Arc::new(use_cases.task_work()),
            tasks,
            worked,
            use_cases,
            hub,
            store,
            bucket,
            upload_rows,
            queues,
            holds,
            invariants,
            jobs,
        }
    }

    pub fn processor(&self) -> ChunkProcessor {
        self.use_cases.processor()
    }
}

fn every_priority() -> OwnerPriorities {
    OwnerPriorities::parse(r#"{"*": "high"}"#).expect("valid priorities")
}

/// The limits of a seed. Times are shorter and sizes smaller than in the deployed system, so that a short run meets
/// them.
fn limits(plan: &Plan, broken: Broken) -> Limits {
    let Plan { ceilings, breaker, .. } = *plan;
    let recovery = Recovery { stale: plan.stale };
    let deadlines = Deadlines { default_seconds: DEADLINE_SECONDS, maximum_seconds: DEADLINE_SECONDS };
    let times = TimeLimits {
        split: SplitTime { limit: LEASE.saturating_sub(MARGIN) },
        complete: CompleteTime { limit: TIMEOUT },
        dead_letter: CompleteTime { limit: LEASE.saturating_sub(LEASE_MARGIN) },
        ..TimeLimits::default()
    };
    let resend_after = if broken == Broken::ResendsAtOnce { Duration::ZERO } else { GRACE };
    let grace = if broken == Broken::NoGrace { Duration::ZERO } else { GRACE };
    let of_tests = Limits::default();
    Limits {
        create: CreateLimits {
            chunks: ChunkLimits { max_items: plan.chunk_items, max_bytes: 1 << 16, max_record_bytes: 1 << 16 },
            tallies_ahead_min: plan.tallies_ahead,
            ceilings,
            deadlines,
            recovery,
            ..of_tests.create
        },
        redrive: RedriveLimits { ceilings, deadlines, recovery, ..of_tests.redrive },
        split: SplitLimits {
            range_bytes: plan.range_bytes,
            first_max_bytes: plan.range_bytes,
            time: times.split,
            margin: MARGIN,
            stop: StopGrace { grace: resend_after },
            ..of_tests.split
        },
        run: RunLimits {
            transient_retries: plan.transient_retries,
            backoff: Duration::from_millis(100),
            margin: MARGIN,
            item_timeout: ITEM_TIMEOUT,
            passed_over_max: plan.passed_over_max,
            output_max_bytes: 1 << 20,
            ..of_tests.run
        },
        breaker,
        complete: CompleteLimits {
            // The margin is a share of the time limit.
            time: CompleteTime { limit: 4 * MARGIN },
            part_bytes: 100,
            ..of_tests.complete
        },
        dead_letter: DeadLetterLimits { times, recovery: Recovery { stale: PATIENCE }, ..of_tests.dead_letter },
        sweep: SweepLimits {
            recovery,
            stop: StopGrace { grace },
            jobs_max: plan.sweep_jobs_max,
            time: SWEEP_TIME,
            tallies_max: plan.tallies_max,
            longest_pause: LONGEST_PAUSE,
            backoff_max: BACKOFF_MAX,
            ..of_tests.sweep
        },
        ..of_tests
    }
}
