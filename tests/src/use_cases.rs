//! The use cases of all functions, as both test worlds build them: by the constructors of the functions, from ports and
//! settings of the test.

use std::sync::Arc;
use std::time::Duration;

use cancel_job::change::Changer;
use complete_job::complete::Completer;
use complete_job::limits::CompleteLimits;
use create_job::create::{CreateLimits, Creator};
use dead_letter::limits::DeadLetterLimits;
use dead_letter::settle::DeadLetters;
use erase_job::erase::Eraser;
use job_status::handler::JobPages;
use process_items::process::ChunkProcessor;
use process_items::run::RunLimits;
use redrive_job::redrive::{RedriveLimits, Redriver};
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::model::job::LEASE_MARGIN;
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::owner_priorities::OwnerPriorities;
use rowmill_core::ports::Queue;
use rowmill_core::progress::waits::Waker;
use rowmill_core::sending::priority_router::PriorityRouter;
use rowmill_core::wiring::{ChunkQueues, Missing, Port, Ports};
use rowmill_settings::{
    BucketSettings, CompleteTime, JobRetention, Links, OtherBuckets, Recovery, SplitTime, StopGrace, TimeLimits,
};
use split_job::split::{SplitLimits, Splitter};
use start_job::starter::Starter;
use sweep::sweep::{SweepLimits, Sweeper};
use upload::upload::{UploadLimits, Uploads};
use work_task::lend::TaskWork;
use work_task::start::TaskTypes;

/// The settings of all functions.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub uploads: UploadLimits,
    pub create: CreateLimits,
    pub links: Links,
    pub redrive: RedriveLimits,
    pub split: SplitLimits,
    pub run: RunLimits,
    pub breaker: BreakerLimits,
    pub complete: CompleteLimits,
    pub dead_letter: DeadLetterLimits,
    pub sweep: SweepLimits,
    pub jobs: JobRetention,
}

/// Duration of the leases of the splitter and of the dead-letter function.
const LEASE: Duration = Duration::from_secs(300);

/// The defaults of the deployed functions, but for what makes tests slow or harder to read.
impl Default for Limits {
    fn default() -> Self {
        let split = SplitLimits::default();
        let times = TimeLimits {
            split: SplitTime { limit: LEASE.saturating_sub(split.margin) },
            dead_letter: CompleteTime { limit: LEASE.saturating_sub(LEASE_MARGIN) },
            ..TimeLimits::default()
        };
        Self {
            uploads: UploadLimits { direct_max_bytes: 100 << 20, ..UploadLimits::default() },
            // No chunk grows: each has the size that the test wants. One worker asks for one tally, so the minimum
            // counts.
            create: CreateLimits {
                fast_factor: 1,
                workers: 1,
                chunks_per_invocation: 1,
                tallies_ahead_min: 16,
                ..CreateLimits::default()
            },
            links: Links::default(),
            redrive: RedriveLimits { corrected_max_bytes: 1 << 20, ..RedriveLimits::default() },
            // In a world without parallel runs, none is at work when a job is resumed.
            split: SplitLimits { time: times.split, stop: StopGrace { grace: Duration::ZERO }, ..split },
            run: RunLimits {
                transient_retries: 2,
                backoff: Duration::from_millis(10),
                margin: Duration::from_secs(2),
                passed_over_max: 2,
                output_max_bytes: 1 << 20,
                ..RunLimits::default()
            },
            // Off: a test of transient errors without a breaker expects deliveries.
            breaker: BreakerLimits { failures: 0, window: Duration::from_secs(600), probe: Duration::from_secs(60) },
            // A margin of 20 s, like the splitter's.
            complete: CompleteLimits {
                time: CompleteTime { limit: Duration::from_secs(80) },
                unprocessed_max_bytes: 1 << 20,
                ..CompleteLimits::default()
            },
            dead_letter: DeadLetterLimits {
                times,
                recovery: Recovery { stale: Duration::from_secs(150) },
                ..DeadLetterLimits::default()
            },
            sweep: SweepLimits { stop: StopGrace { grace: Duration::from_secs(300) }, ..SweepLimits::default() },
            jobs: JobRetention::default(),
        }
    }
}

impl Limits {
    #[must_use]
    pub fn but(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// The use cases over one set of ports.
#[derive(Clone)]
pub struct UseCases {
    pub ports: Ports,
    pub limits: Limits,
    pub job_types: JobTypes,
}

/// The external bucket that jobs may read.
pub const INPUT_BUCKET: &str = "data";

/// An external bucket in which results may be stored.
pub const OUTPUT_BUCKET: &str = "reports";

/// The queues of chunks of a test that has one items queue for all priorities.
pub fn without_priorities(
    limits: &JobTypeLimits,
    lanes: Arc<dyn Queue<ChunkMessage>>,
    items: Arc<dyn Queue<ChunkMessage>>,
    isolated: Arc<dyn Queue<ChunkMessage>>,
) -> Port<ChunkQueues> {
    let items = PriorityRouter { high: Arc::clone(&items), normal: items, low: None };
    Port::given(Arc::new(ChunkQueues::new(limits, lanes, items, isolated)))
}

/// The test gives all ports.
fn built<U>(use_case: Result<U, Missing>) -> U {
    use_case.expect("the ports are given")
}

impl UseCases {
    pub fn uploads(&self) -> Uploads {
        built(Uploads::new(&self.ports, self.limits.uploads))
    }

    pub fn creator(&self) -> Creator {
        let priorities = OwnerPriorities::default();
        let buckets = BucketSettings {
            inputs: format!("arn:aws:s3:::{INPUT_BUCKET}"),
            outputs: format!("arn:aws:s3:::{OUTPUT_BUCKET}"),
            ..BucketSettings::default()
        };
        built(Creator::new(
            &self.ports,
            self.job_types.clone(),
            self.limits.create,
            priorities,
            OtherBuckets::of(buckets, "own"),
        ))
    }

    pub fn pages(&self) -> JobPages {
        built(JobPages::new(&self.ports, self.limits.links))
    }

    pub fn changer(&self) -> Changer {
        let Limits { jobs, create, sweep, .. } = self.limits;
        built(Changer::new(&self.ports, jobs, create.deadlines, sweep.recovery, OwnerPriorities::default()))
    }

    pub fn eraser(&self) -> Eraser {
        built(Eraser::new(&self.ports, self.limits.sweep.recovery))
    }

    pub fn redriver(&self) -> Redriver {
        built(Redriver::new(&self.ports, self.limits.redrive))
    }

    pub fn starter(&self) -> Starter {
        built(Starter::new(&self.ports, self.creator()))
    }

    pub fn waker(&self) -> Waker {
        built(Waker::of(&self.ports))
    }

    pub fn splitter(&self) -> Splitter {
        built(Splitter::new(&self.ports, self.limits.split))
    }

    /// A new process of `process-items`, which has prepared no job yet.
    pub fn processor(&self) -> ChunkProcessor {
        let Limits { run, breaker, links, .. } = self.limits;
        built(ChunkProcessor::new(&self.ports, self.job_types.clone(), run, breaker, links))
    }

    pub fn task_work(&self) -> TaskWork {
        built(TaskWork::new(&self.ports, TaskTypes::of(&self.job_types), self.limits.links))
    }

    pub fn completer(&self) -> Completer {
        built(Completer::new(&self.ports, self.limits.complete))
    }

    pub fn dead_letters(&self) -> DeadLetters {
        built(DeadLetters::new(&self.ports, self.limits.dead_letter))
    }

    pub fn sweeper(&self) -> Sweeper {
        built(Sweeper::new(&self.ports, self.limits.sweep, self.limits.breaker))
    }
}
