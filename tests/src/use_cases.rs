//! One builder for the use cases of all functions: both test worlds give it their ports and their limits.
//!
//! A new port is a field of [`Ports`], a new limit a field of [`Limits`], a new use case a method of [`UseCases`].

use std::sync::Arc;
use std::time::Duration;

use cancel_job::cancel::Canceller;
use cancel_job::pause::Pauser;
use complete_job::complete::Completer;
use complete_job::compose::Composer;
use create_job::create::{CreateLimits, Creator};
use dead_letter::settle::DeadLetters;
use job_status::items::ItemPages;
use job_status::limits::AUDIT_LIMITS;
use job_status::results::JobResults;
use process_items::lane::LaneHold;
use process_items::open_chunk::ChunkPorts;
use process_items::prepared::PreparedJobs;
use process_items::process::ChunkProcessor;
use process_items::reports::RunReports;
use process_items::run::{RunLimits, Runs};
use redrive_job::redrive::{RedriveLimits, Redriver};
use rowmill_api::owner_priorities::OwnerPriorities;
use rowmill_core::items::audit::Auditor;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::model::lanes::JobTypeLimits;
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, SplitMessage};
use rowmill_core::ports::{
    BatchRunner, Breakers, Ceilings, Clock, Deliveries, DirectTransfers, Entropy, JobStore, MultipartObjects, Objects,
    OutstandingUploads, Queue, RecordStore, UploadStore,
};
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::breaker::BreakerSteps;
use rowmill_core::progress::commit::resend::ChunkResender;
use rowmill_core::progress::views::job_reader::JobReader;
use rowmill_core::sending::lane_router::LaneRouter;
use rowmill_core::sending::priority_router::PriorityRouter;
use rowmill_core::text::ChunkLimits;
use rowmill_settings::{Deadlines, JobRetention, Recovery, StopGrace, TimeLimits};
use split_job::split::{SplitLimits, Splitter};
use sweep::sweep::{SweepLimits, Sweeper};
use upload::upload::{UploadLimits, Uploads};

/// Everything outside the use cases.
#[derive(Clone)]
pub struct Ports {
    pub jobs: Arc<dyn JobStore>,
    pub uploads: Arc<dyn UploadStore>,
    pub breakers: Arc<dyn Breakers>,
    pub outstanding: Arc<dyn OutstandingUploads>,
    pub records: Arc<dyn RecordStore>,
    /// The jobs queue.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    /// The items queue.
    pub chunks: Arc<dyn Queue<ChunkMessage>>,
    pub isolated: Arc<dyn Queue<ChunkMessage>>,
    pub lanes: Arc<dyn Queue<ChunkMessage>>,
    pub lane_deliveries: Arc<dyn Deliveries>,
    pub completions: Arc<dyn Queue<CompletionMessage>>,
    pub objects: Arc<dyn Objects>,
    pub multipart: Arc<dyn MultipartObjects>,
    /// Presigned requests to the bucket.
    pub transfers: Arc<dyn DirectTransfers>,
    pub batches: Arc<dyn BatchRunner>,
    pub clock: Arc<dyn Clock>,
    /// IDs and jitter.
    pub entropy: Arc<dyn Entropy>,
}

/// The limits of all functions. A limit that several functions share is one field.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub uploads: UploadLimits,
    pub chunks: ChunkLimits,
    /// Number of tallies of a job sent ahead.
    pub tallies_ahead: u32,
    pub ceilings: Ceilings,
    pub deadlines: Deadlines,
    pub corrected_max_bytes: u64,
    pub link_expiry: Duration,
    /// Retention of a job after its end.
    pub retention: Duration,
    /// Duration of a lease; longer than an invocation lasts.
    pub lease: Duration,
    /// Time before its time limit at which a splitter or a completer hands over.
    pub margin: Duration,
    /// Size of one read of the splitter.
    pub range_bytes: u64,
    pub run: RunLimits,
    /// Maximum number of bytes of an upload copied to the results because they were not processed.
    pub unprocessed_max_bytes: u64,
    pub part_bytes: usize,
    /// Time after its checkpoint's last move in which an isolated chunk is not given up.
    pub patience: Duration,
    /// Time after its last commit in which a job is not ended by the dead letter of a completion message.
    pub completion_patience: Duration,
    /// When the breaker of a job type opens.
    pub breaker: BreakerLimits,
    pub recovery: Recovery,
    /// Time after a stop in which a chunk that is being processed may still be committed.
    pub grace: Duration,
    /// Time after the begin of a pause in which a splitter sends no chunk again.
    pub resend_after: Duration,
    pub sweep_jobs_max: usize,
    /// Time in which a sweep takes up further jobs.
    pub sweep_time: Duration,
    /// Maximum number of tallies a recovery reads.
    pub tallies_max: u32,
    /// The longest time between two recoveries of a job.
    pub backoff_max: Duration,
}

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// The test defaults, close to the defaults of the deployed functions.
impl Default for Limits {
    fn default() -> Self {
        Self {
            uploads: UploadLimits {
                direct_max_bytes: 100 << 20,
                single_put_max_bytes: 64 << 20,
                part_bytes: 16 << 20,
                ..UploadLimits::default()
            },
            chunks: ChunkLimits { max_items: 500, max_bytes: 1 << 20, max_record_bytes: 1 << 20 },
            tallies_ahead: 16,
            ceilings: Ceilings { owner: 20, job_type: 100, system: 200 },
            deadlines: Deadlines::default(),
            corrected_max_bytes: 1 << 20,
            link_expiry: HOUR,
            retention: 30 * DAY,
            lease: Duration::from_secs(300),
            margin: Duration::from_secs(20),
            range_bytes: 8 << 20,
            run: RunLimits {
                transient_retries: 2,
                backoff: Duration::from_millis(10),
                margin: Duration::from_secs(2),
                item_timeout: Duration::from_secs(20),
                passed_over_max: 2,
                output_max_bytes: 1 << 20,
            },
            unprocessed_max_bytes: 1 << 20,
            part_bytes: 8 << 20,
            patience: Duration::from_secs(150),
            completion_patience: Duration::from_secs(440),
            // Off: a test of transient errors without a breaker expects deliveries.
            breaker: BreakerLimits { failures: 0, window: Duration::from_secs(600), probe: Duration::from_secs(60) },
            recovery: Recovery::default(),
            grace: Duration::from_secs(300),
            // In a world without parallel runs, none is at work.
            resend_after: Duration::ZERO,
            sweep_jobs_max: 100,
            sweep_time: Duration::from_secs(45),
            tallies_max: 4,
            backoff_max: 4 * HOUR,
        }
    }
}

/// The use cases over one set of ports.
#[derive(Clone)]
pub struct UseCases {
    pub ports: Ports,
    pub limits: Limits,
    pub job_types: JobTypes,
    /// The limits that job types have of their own.
    pub type_limits: JobTypeLimits,
}

impl UseCases {
    pub fn uploads(&self) -> Uploads {
        let Ports { uploads, objects, transfers, multipart, outstanding, clock, entropy, .. } = self.ports.clone();
        Uploads { uploads, objects, transfers, multipart, outstanding, clock, entropy, limits: self.limits.uploads }
    }

    pub fn creator(&self) -> Creator {
        let Ports { jobs, uploads, objects, outstanding, records, splits, clock, entropy, .. } = self.ports.clone();
        let limits = CreateLimits {
            chunks: self.limits.chunks,
            // No chunk grows: each has the size that the test wants.
            fast_factor: 1,
            // One worker asks for one tally, so the minimum counts.
            workers: 1,
            chunks_per_invocation: 1,
            tallies_ahead_min: self.limits.tallies_ahead,
            ceilings: self.limits.ceilings,
            deadlines: self.limits.deadlines,
            recovery: self.limits.recovery,
            jobs: JobRetention { retention: self.limits.retention },
            ..CreateLimits::default()
        };
        let (job_types, type_limits) = (self.job_types.clone(), self.type_limits.clone());
        let owner_priorities = OwnerPriorities::default();
        Creator {
            jobs,
            uploads,
            objects,
            outstanding,
            records,
            splits,
            job_types,
            clock,
            entropy,
            limits,
            type_limits,
            owner_priorities,
        }
    }

    pub fn status(&self) -> JobReader {
        let Ports { jobs, clock, .. } = self.ports.clone();
        JobReader { jobs, clock }
    }

    /// `job-status`: failed and skipped items.
    pub fn items(&self) -> ItemPages {
        let Ports { jobs, objects, .. } = self.ports.clone();
        ItemPages { jobs, objects }
    }

    pub fn results(&self) -> JobResults {
        let Ports { objects, transfers, clock, .. } = self.ports.clone();
        JobResults { objects, transfers, clock, link_expiry: self.limits.link_expiry }
    }

    pub fn auditor(&self) -> Auditor {
        let Ports { jobs, objects, clock, .. } = self.ports.clone();
        Auditor { jobs, objects, clock, limits: AUDIT_LIMITS }
    }

    pub fn canceller(&self) -> Canceller {
        let Ports { jobs, clock, .. } = self.ports.clone();
        Canceller { jobs, clock, retention: self.limits.retention }
    }

    /// `cancel-job`: pausing and resuming.
    pub fn pauser(&self) -> Pauser {
        let Ports { jobs, splits, clock, .. } = self.ports.clone();
        Pauser { jobs, splits, clock }
    }

    pub fn redriver(&self) -> Redriver {
        let Ports { jobs, uploads, objects, splits, clock, entropy, .. } = self.ports.clone();
        let limits = RedriveLimits {
            ceilings: self.limits.ceilings,
            deadlines: self.limits.deadlines,
            recovery: self.limits.recovery,
            corrected_max_bytes: self.limits.corrected_max_bytes,
            ..RedriveLimits::default()
        };
        let type_limits = self.type_limits.clone();
        Redriver { jobs, uploads, objects, splits, clock, entropy, limits, type_limits }
    }

    pub fn splitter(&self) -> Splitter {
        let Ports { jobs, objects, records, chunks, splits, clock, entropy, .. } = self.routed();
        let limits = SplitLimits {
            range_bytes: self.limits.range_bytes,
            times: TimeLimits { split: self.limits.lease.saturating_sub(self.limits.margin), ..TimeLimits::default() },
            margin: self.limits.margin,
            stop: StopGrace { grace: self.limits.resend_after },
            ..SplitLimits::default()
        };
        let (steps, resender) = (self.steps(), self.resender());
        Splitter { jobs, objects, records, chunks, splits, resender, steps, clock, entropy, limits }
    }

    /// A new process of `process-items`, which has prepared no job yet.
    pub fn processor(&self) -> ChunkProcessor {
        let Ports { jobs, objects, chunks, isolated, lane_deliveries, batches, clock, entropy, .. } = self.routed();
        let prepared = PreparedJobs::new(Arc::clone(&jobs), self.job_types.clone(), Arc::clone(&batches));
        let (limits, type_limits) = (self.limits.run, self.type_limits.clone());
        ChunkProcessor {
            lane: LaneHold { deliveries: lane_deliveries, clock: Arc::clone(&clock) },
            ports: ChunkPorts { jobs, objects, chunks, isolated, clock, entropy },
            committer: self.steps().committer,
            runs: Runs { prepared, batches, limits, type_limits },
            reports: RunReports::new(self.breaker()),
        }
    }

    pub fn completer(&self) -> Completer {
        let Ports { jobs, objects, multipart, completions, clock, entropy, .. } = self.ports.clone();
        let Limits { unprocessed_max_bytes, part_bytes, margin, lease, retention, .. } = self.limits;
        let composer = Composer {
            jobs: Arc::clone(&jobs),
            objects,
            multipart,
            clock: Arc::clone(&clock),
            unprocessed_max_bytes,
            part_bytes,
            packed: rowmill_formats::Limits::default(),
        };
        Completer { jobs, clock, entropy, composer, completions, margin, lease, retention }
    }

    pub fn dead_letters(&self) -> DeadLetters {
        let Ports { jobs, objects, isolated, clock, entropy, .. } = self.routed();
        let Limits { patience, completion_patience, lease, retention, .. } = self.limits;
        let steps = self.steps();
        DeadLetters { jobs, objects, isolated, steps, clock, entropy, patience, completion_patience, lease, retention }
    }

    pub fn sweeper(&self) -> Sweeper {
        let Ports { jobs, splits, chunks, isolated, clock, entropy, .. } = self.routed();
        let limits = SweepLimits {
            recovery: self.limits.recovery,
            jobs: JobRetention { retention: self.limits.retention },
            stop: StopGrace { grace: self.limits.grace },
            jobs_max: self.limits.sweep_jobs_max,
            time: self.limits.sweep_time,
            tallies_max: self.limits.tallies_max,
            backoff_max: self.limits.backoff_max,
            times: TimeLimits::default(),
        };
        let (steps, resender, breaker) = (self.steps(), self.resender(), self.breaker());
        let chunks = Arc::new(PriorityRouter { high: Arc::clone(&chunks), normal: chunks, low: None });
        Sweeper { jobs, splits, chunks, isolated, resender, steps, breaker, clock, entropy, limits }
    }

    fn breaker(&self) -> BreakerSteps {
        let Ports { jobs, breakers, clock, entropy, .. } = self.ports.clone();
        BreakerSteps::new(jobs, breakers, clock, entropy, self.limits.breaker)
    }

    /// The ports, with the lanes beside the queues of chunks.
    fn routed(&self) -> Ports {
        let route = |queue: &Arc<dyn Queue<ChunkMessage>>| -> Arc<dyn Queue<ChunkMessage>> {
            let (queue, lanes) = (Arc::clone(queue), Arc::clone(&self.ports.lanes));
            Arc::new(LaneRouter { limits: self.type_limits.clone(), queue, lanes })
        };
        let (chunks, isolated) = (route(&self.ports.chunks), route(&self.ports.isolated));
        Ports { chunks, isolated, ..self.ports.clone() }
    }

    fn resender(&self) -> ChunkResender {
        let Ports { jobs, objects, chunks, isolated, .. } = self.routed();
        let JobSteps { committer, window, .. } = self.steps();
        ChunkResender { jobs, objects, chunks, isolated, window, committer }
    }

    fn steps(&self) -> JobSteps {
        let Ports { jobs, objects, chunks, completions, clock, .. } = self.routed();
        JobSteps::new(jobs, objects, chunks, completions, clock)
    }
}
