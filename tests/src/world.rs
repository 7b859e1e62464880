//! All functions over in-memory ports: the whole pipeline in one process, its queues in the test's hands and every call
//! of the queue-fed functions open to a crash.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cancel_job::cancel::Canceller;
use complete_job::complete::Completer;
use complete_job::compose::Composer;
use create_job::create::{CreateJobError, CreateLimits, Creator};
use create_job::request::CreateJobRequest;
use dead_letter::settle::{DeadLetters, DeadMessage};
use jiff::Timestamp;
use job_status::items::ItemPages;
use job_status::results::JobResults;
use job_status::show::Jobs;
use process_items::prepared::PreparedJobs;
use process_items::process::{ChunkEnd, ChunkProcessor};
use process_items::run::{RunError, RunLimits};
use process_items::watch::JobWatch;
use redrive_job::redrive::{RedriveLimits, Redriver};
use rowmill_aws::settings::Recovery;
use rowmill_core::in_memory::{
    CountingEntropy, InMemoryJobStore, InMemoryObjects, InMemoryQueue, InMemoryRecordStore, InMemoryUploadStore,
    ManualClock,
};
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, SplitMessage};
use rowmill_core::model::run_output::FailedItem;
use rowmill_core::ports::processor::JobType;
use rowmill_core::ports::{Ceilings, Clock, Jobs as _};
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::job_view::JobView;
use rowmill_core::text::ChunkLimits;
use serde_json::Value;
use split_job::split::{SplitLimits, Splitter};
use sweep::sweep::{SweepLimits, Sweeper, Swept};
use upload::upload::{UploadLimits, Uploads};

use crate::faults::{Faults, Mortal};

/// Everything there is.
pub struct World {
    /// The jobs' rows.
    pub jobs: Arc<InMemoryJobStore>,
    /// The bucket.
    pub objects: Arc<InMemoryObjects>,
    /// The records table.
    pub records: Arc<InMemoryRecordStore>,
    /// The jobs queue.
    pub splits: Arc<InMemoryQueue<SplitMessage>>,
    /// The items queue.
    pub chunks: Arc<InMemoryQueue<ChunkMessage>>,
    /// The isolate queue.
    pub isolated: Arc<InMemoryQueue<ChunkMessage>>,
    /// The completions queue.
    pub completions: Arc<InMemoryQueue<CompletionMessage>>,
    /// The time.
    pub clock: Arc<ManualClock>,
    /// When a function dies.
    pub faults: Arc<Faults>,
    /// `upload`.
    pub uploads: Uploads,
    /// `create-job`.
    pub creator: Creator,
    /// `split-job`.
    pub splitter: Splitter,
    /// `process-items`.
    pub processor: ChunkProcessor,
    /// `complete-job`.
    pub completer: Completer,
    /// `job-status`: jobs.
    pub status: Jobs,
    /// `job-status`: failed and skipped items.
    pub items: ItemPages,
    /// `job-status`: results.
    pub results: JobResults,
    /// `cancel-job`.
    pub canceller: Canceller,
    /// `redrive-job`.
    pub redriver: Redriver,
    /// `dead-letter`.
    pub dead_letters: DeadLetters,
    /// `sweep`.
    pub sweeper: Sweeper,
}

/// What may be different from world to world.
#[derive(Clone, Copy, Debug)]
pub struct WorldLimits {
    /// Where a chunk ends.
    pub chunks: ChunkLimits,
    /// How many jobs may be active.
    pub ceilings: Ceilings,
    /// How many bytes the splitter reads at once.
    pub range_bytes: u64,
    /// How much of an upload is copied because it was not processed.
    pub unprocessed_max_bytes: u64,
    /// How long a part of a result is.
    pub part_bytes: usize,
    /// A job type beside the built-in ones.
    pub job_type: Option<fn() -> Arc<dyn JobType>>,
}

impl WorldLimits {
    fn job_types(&self, records: &Arc<InMemoryRecordStore>) -> JobTypes {
        JobTypes::built_in(Some(records.clone())).with(self.job_type.map(|make| make()))
    }
}

impl Default for WorldLimits {
    fn default() -> Self {
        Self {
            chunks: ChunkLimits { max_items: 500, max_bytes: 1 << 20, max_record_bytes: 1 << 20 },
            ceilings: Ceilings { owner: 20, job_type: 100, system: 200 },
            range_bytes: 8 << 20,
            unprocessed_max_bytes: 1 << 20,
            part_bytes: 8 << 20,
            job_type: None,
        }
    }
}

/// Longer than anything takes.
const A_WHILE: Duration = Duration::from_secs(300);

/// For so long after its last commit, a job is not given up because of a message to end it.
pub const COMPLETION_PATIENCE: Duration = Duration::from_secs(440);

/// Without a sign of life for so long, a job is recovered.
pub const STALE: Duration = Duration::from_secs(900);

const RETENTION: Duration = Duration::from_secs(30 * 86_400);

impl World {
    /// A world of its own.
    pub fn new(limits: WorldLimits) -> Self {
        let jobs = Arc::new(InMemoryJobStore::default());
        let upload_rows = Arc::new(InMemoryUploadStore::default());
        let objects = Arc::new(InMemoryObjects::default());
        let records = Arc::new(InMemoryRecordStore::default());
        let splits = Arc::new(InMemoryQueue::default());
        let chunks = Arc::new(InMemoryQueue::default());
        let isolated = Arc::new(InMemoryQueue::default());
        let completions = Arc::new(InMemoryQueue::default());
        let clock = Arc::new(ManualClock::default());
        let entropy = Arc::new(CountingEntropy::default());
        let faults = Arc::new(Faults::default());
        let mortal_jobs = Mortal::new(jobs.clone(), &faults);
        let mortal_objects = Mortal::new(objects.clone(), &faults);
        let mortal_chunks = Mortal::new(chunks.clone(), &faults);
        let mortal_isolated = Mortal::new(isolated.clone(), &faults);
        let mortal_splits = Mortal::new(splits.clone(), &faults);
        let steps = JobSteps::new(
            mortal_jobs.clone(),
            mortal_objects.clone(),
            mortal_chunks.clone(),
            Mortal::new(completions.clone(), &faults),
            clock.clone(),
        );
        Self {
            uploads: Uploads {
                uploads: upload_rows.clone(),
                objects: objects.clone(),
                transfers: objects.clone(),
                multipart: objects.clone(),
                clock: clock.clone(),
                entropy: entropy.clone(),
                limits: upload_limits(),
            },
            creator: Creator {
                jobs: jobs.clone(),
                uploads: upload_rows.clone(),
                objects: objects.clone(),
                splits: splits.clone(),
                job_types: limits.job_types(&records),
                clock: clock.clone(),
                entropy: entropy.clone(),
                limits: create_limits(limits),
            },
            splitter: Splitter {
                jobs: mortal_jobs.clone(),
                objects: mortal_objects.clone(),
                records: records.clone(),
                chunks: mortal_chunks.clone(),
                splits: mortal_splits.clone(),
                steps: steps.clone(),
                clock: clock.clone(),
                entropy: entropy.clone(),
                limits: SplitLimits {
                    range_bytes: limits.range_bytes,
                    timeout: A_WHILE - Duration::from_secs(20),
                    margin: Duration::from_secs(20),
                    ..SplitLimits::default()
                },
            },
            processor: ChunkProcessor {
                jobs: mortal_jobs.clone(),
                objects: mortal_objects.clone(),
                chunks: mortal_chunks.clone(),
                isolated: mortal_isolated.clone(),
                steps: steps.clone(),
                clock: clock.clone(),
                entropy: entropy.clone(),
                prepared: PreparedJobs::new(mortal_jobs.clone(), limits.job_types(&records)),
                limits: RunLimits {
                    transient_retries: 2,
                    backoff: Duration::from_millis(10),
                    margin: Duration::from_secs(2),
                    poison_max: 2,
                    output_max_bytes: 1 << 20,
                },
            },
            completer: Completer {
                composer: Composer {
                    jobs: mortal_jobs.clone(),
                    objects: mortal_objects.clone(),
                    multipart: mortal_objects.clone(),
                    clock: clock.clone(),
                    unprocessed_max_bytes: limits.unprocessed_max_bytes,
                    part_bytes: limits.part_bytes,
                    packed: rowmill_formats::Limits::default(),
                },
                jobs: mortal_jobs.clone(),
                completions: Mortal::new(completions.clone(), &faults),
                margin: Duration::from_secs(20),
                clock: clock.clone(),
                entropy: entropy.clone(),
                lease: A_WHILE,
                retention: RETENTION,
            },
            status: Jobs { jobs: jobs.clone(), clock: clock.clone() },
            items: ItemPages { jobs: jobs.clone(), objects: objects.clone() },
            results: JobResults {
                objects: objects.clone(),
                transfers: objects.clone(),
                clock: clock.clone(),
                link_expiry: Duration::from_secs(3600),
            },
            canceller: Canceller { jobs: jobs.clone(), clock: clock.clone() },
            redriver: Redriver {
                jobs: mortal_jobs.clone(),
                uploads: upload_rows,
                objects: mortal_objects.clone(),
                splits: mortal_splits.clone(),
                clock: clock.clone(),
                entropy: entropy.clone(),
                limits: redrive_limits(limits),
            },
            dead_letters: DeadLetters {
                jobs: mortal_jobs.clone(),
                objects: mortal_objects.clone(),
                isolated: mortal_isolated.clone(),
                steps: steps.clone(),
                clock: clock.clone(),
                entropy: entropy.clone(),
                patience: A_WHILE / 2,
                completion_patience: COMPLETION_PATIENCE,
                lease: A_WHILE,
                retention: RETENTION,
            },
            sweeper: Sweeper {
                jobs: mortal_jobs,
                objects: mortal_objects,
                splits: mortal_splits,
                chunks: mortal_chunks,
                isolated: mortal_isolated,
                steps,
                clock: clock.clone(),
                entropy,
                limits: SweepLimits { recovery: Recovery { stale: STALE }, grace: A_WHILE, ..SweepLimits::default() },
            },
            jobs,
            objects,
            records,
            splits,
            chunks,
            isolated,
            completions,
            clock,
            faults,
        }
    }

    /// The only owner.
    pub fn owner() -> Owner {
        Owner(Owner::LOCAL.to_owned())
    }

    /// Uploads a file.
    pub async fn store(&self, content_type: &str, bytes: impl Into<Bytes>) -> FileGuid {
        let stored = self.uploads.store(&Self::owner(), content_type, None, bytes.into()).await;
        stored.expect("the file is stored").file_guid
    }

    /// Creates a job.
    ///
    /// # Errors
    /// As the use case says.
    pub async fn create(&self, job_type: &str, file_guid: FileGuid, params: Value) -> Result<Job, CreateJobError> {
        let request = serde_json::json!({ "jobType": job_type, "fileGuid": file_guid, "params": params });
        let request: CreateJobRequest = serde_json::from_value(request).expect("a request");
        self.creator.create(&Self::owner(), &request, None).await
    }

    /// A time limit that leaves time for everything.
    pub fn deadline(&self) -> Timestamp {
        self.clock.now() + A_WHILE
    }

    /// Delivers a chunk.
    ///
    /// # Errors
    /// Where the process died.
    pub async fn try_process(&self, message: &ChunkMessage, redelivered: bool) -> Result<ChunkEnd, RunError> {
        let watch = JobWatch::new(self.processor.jobs.clone(), self.clock.clone(), Duration::ZERO);
        self.processor.process(message, redelivered, self.deadline(), &watch).await
    }

    /// Delivers a chunk to a process that does not die.
    pub async fn process(&self, message: &ChunkMessage, redelivered: bool) -> ChunkEnd {
        self.try_process(message, redelivered).await.expect("in-memory ports do not fail")
    }

    /// Takes all messages off the queues, if there are any.
    fn queued(&self) -> Option<(Vec<SplitMessage>, Vec<ChunkMessage>, Vec<CompletionMessage>)> {
        let (splits, mut chunks, completions) = (self.splits.take(), self.chunks.take(), self.completions.take());
        chunks.extend(self.isolated.take());
        let any = !splits.is_empty() || !chunks.is_empty() || !completions.is_empty();
        any.then_some((splits, chunks, completions))
    }

    /// Delivers every message until there are none; a splitter or a completer has `time` at a time. A message whose process
    /// dies is delivered again, after everything a dead process may still have held has run out.
    pub async fn run_through_crashes(&self, time: Duration) {
        let mut redelivered = false;
        while let Some((splits, chunks, completions)) = self.queued() {
            for message in splits {
                while self.splitter.split(&message, self.clock.now() + time).await.is_err() {
                    self.after_a_crash();
                }
            }
            for message in chunks {
                while self.try_process(&message, redelivered).await.is_err() {
                    redelivered = true;
                    self.after_a_crash();
                }
            }
            for message in completions {
                while self.completer.complete(&message, self.clock.now() + time).await.is_err() {
                    self.after_a_crash();
                }
            }
        }
    }

    fn after_a_crash(&self) {
        assert!(self.faults.revive(), "only a dead process fails");
        self.clock.advance(A_WHILE);
    }

    /// Delivers every message in the order it was sent until there are none.
    pub async fn run(&self) {
        while let Some((splits, chunks, completions)) = self.queued() {
            for message in splits {
                self.splitter.split(&message, self.deadline()).await.expect("in-memory ports do not fail");
            }
            for message in chunks {
                self.process(&message, false).await;
            }
            for message in completions {
                self.completer.complete(&message, self.deadline()).await.expect("in-memory ports do not fail");
            }
        }
    }

    /// Delivers every message until there are none, each up to three times; then it is a dead letter. Between two deliveries
    /// everything runs out that a run may have held.
    pub async fn run_with_dead_letters(&self) {
        let mut letters = 0;
        while let Some((splits, chunks, completions)) = self.queued() {
            for message in splits {
                self.splitter.split(&message, self.deadline()).await.expect("in-memory ports do not fail");
            }
            for message in chunks {
                let mut receives = 0;
                while self.try_process(&message, receives > 0).await.is_err() {
                    self.clock.advance(A_WHILE);
                    receives += 1;
                    if receives == 3 {
                        letters += 1;
                        let dead = DeadMessage::Chunk(message.clone());
                        let settled = self.dead_letters.settle(&format!("letter-{letters}"), &dead).await;
                        settled.expect("nobody is at it any more");
                        break;
                    }
                }
            }
            for message in completions {
                self.completer.complete(&message, self.deadline()).await.expect("in-memory ports do not fail");
            }
        }
    }

    /// Sweeps, as the schedule does.
    pub async fn sweep(&self) -> Swept {
        self.sweeper.sweep().await.expect("in-memory ports do not fail")
    }

    /// Creates a job of type `validate` with these further fields of the request.
    pub async fn create_with(&self, file_guid: FileGuid, fields: Value) -> Job {
        let mut request = serde_json::json!({ "jobType": "validate", "fileGuid": file_guid });
        let fields = fields.as_object().expect("fields").clone();
        request.as_object_mut().expect("a request").extend(fields);
        let request: CreateJobRequest = serde_json::from_value(request).expect("a request");
        self.creator.create(&Self::owner(), &request, None).await.expect("a job")
    }

    /// The rows of a job that were skipped, read in small pages.
    pub async fn all_skipped(&self, job: JobGuid) -> Vec<u64> {
        let job = self.jobs.job(job).await.expect("the job is there");
        let (mut rows, mut after) = (Vec::new(), 0);
        loop {
            let page = self.items.skipped(&job, after, 3).await.expect("in-memory ports do not fail");
            rows.extend(page.items.iter().map(|item| item.row));
            match page.next {
                Some(next) => after = next,
                None => return rows,
            }
        }
    }

    /// The job as the API shows it.
    pub async fn show(&self, job: JobGuid) -> JobView {
        let job = self.jobs.job(job).await.expect("the job is there");
        self.status.show(&job).await.expect("in-memory ports do not fail")
    }

    /// All failed items of a job, read in small pages.
    pub async fn all_failed(&self, job: JobGuid) -> Vec<FailedItem> {
        let job = self.jobs.job(job).await.expect("the job is there");
        let (mut items, mut after) = (Vec::new(), 0);
        loop {
            let page = self.items.failed(&job, after, 3).await.expect("in-memory ports do not fail");
            assert!(page.items.len() <= 3);
            items.extend(page.items);
            match page.next {
                Some(next) => after = next,
                None => return items,
            }
        }
    }
}

fn upload_limits() -> UploadLimits {
    UploadLimits {
        direct_max_bytes: 100 << 20,
        single_put_max_bytes: 64 << 20,
        part_bytes: 16 << 20,
        ..UploadLimits::default()
    }
}

fn create_limits(limits: WorldLimits) -> CreateLimits {
    CreateLimits {
        chunks: limits.chunks,
        ceilings: limits.ceilings,
        recovery: Recovery { stale: STALE },
        ..CreateLimits::default()
    }
}

fn redrive_limits(limits: WorldLimits) -> RedriveLimits {
    RedriveLimits {
        ceilings: limits.ceilings,
        recovery: Recovery { stale: STALE },
        corrected_max_bytes: 1 << 20,
        ..RedriveLimits::default()
    }
}
