//! Why a job is not done yet: the reasons as the API answers them. [`progress::why`](crate::progress::why) finds them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::ids::JobGuid;
use crate::words::{Open, words};

words! {
    /// What holds a job up.
    ReasonCode {
        /// The job has ended.
        Ended = "ended",
        /// The job is stopped. Running chunks end, the rest is skipped.
        Stopping = "stopping",
        /// The owner has paused the job.
        Paused = "paused",
        /// The breaker of the job type has paused the job, because the target is down.
        TargetDown = "target_down",
        /// The job was resumed, and the limits of active jobs have no room for it.
        NoSlot = "no_slot",
        /// The deadline has passed. The next look stops the job.
        DeadlinePassed = "deadline_passed",
        /// The job waits until its file is fetched.
        FileFetching = "file_fetching",
        /// The job waits until its files are listed.
        FilesListing = "files_listing",
        /// The job waits until another job has ended.
        AfterJob = "after_job",
        /// No function splits the file yet: the job waits in the jobs queue.
        NotTakenUp = "not_taken_up",
        /// The job was resumed or retuned. Its missing chunks are being sent again.
        Resuming = "resuming",
        /// Chunks are sent, and none has begun: they wait in a queue behind those of other jobs.
        ChunksQueued = "chunks_queued",
        /// Chunks are sent, and none has begun: as many of the job type run as may run at once, those of other jobs.
        LaneFull = "lane_full",
        /// Chunks are sent, and none has begun though no other job is active: the functions are throttled, or fail.
        Throttled = "throttled",
        /// Tasks of the job wait, and no worker asks for its type.
        NoWorker = "no_worker",
        /// Workers of the job, or calls of its service, have died. Others get their tasks.
        WorkerDied = "worker_died",
        /// Workers, or a service that answers later, process tasks of the job.
        TasksHeld = "tasks_held",
        /// Tasks of the job wait for workers that are busy, or for a call.
        TasksOffered = "tasks_offered",
        /// The breaker of the job type is open: the target does not answer.
        BreakerOpen = "breaker_open",
        /// Runs of the job type failed lately with transient errors.
        TargetFailing = "target_failing",
        /// Chunks run item by item, because their messages failed at every delivery.
        OneByOne = "one_by_one",
        /// Nothing was noted of the job for a while: a message may be lost.
        Silent = "silent",
        /// The file is being split.
        Splitting = "splitting",
        /// Chunks take longer than one run. Each run continues where the one before ended.
        SlowRows = "slow_rows",
        /// The job type has a limit of running chunks in the whole stack.
        TypeConcurrency = "type_concurrency",
        /// The job has a limit of chunks in flight.
        MaxConcurrency = "max_concurrency",
        /// The job has low priority: few workers process its chunks.
        LowPriority = "low_priority",
        /// All items are accounted for. The results are being composed.
        Composing = "composing",
        /// The job runs: items are being processed.
        Running = "running",
    }
}

/// What holds a job up now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = WhyView)]
#[serde(rename_all = "camelCase")]
pub struct JobWhy {
    /// The job's name.
    pub job_guid: JobGuid,
    /// When the job was looked at.
    pub at: Timestamp,
    /// What holds the job up, the most important first. Never empty.
    pub reasons: Vec<Reason>,
}

/// One thing that holds a job up, or `running`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// What it is, for a program.
    #[schema(value_type = ReasonCode)]
    pub code: Open<ReasonCode>,
    /// What it is and what follows, for a person.
    pub message: String,
    /// Since when; null if no row tells.
    pub since: Option<Timestamp>,
    /// When Rowmill looks at it again by itself; null if it does not, or no row tells.
    pub next_look_at: Option<Timestamp>,
    /// When the job ends at the mean rate so far; null if there is no rate.
    pub expected_end_at: Option<Timestamp>,
    /// Figures by name.
    #[serde(default)]
    #[schema(required)]
    pub numbers: BTreeMap<String, u64>,
    /// Other active jobs of the caller that may be first, at most 10.
    #[serde(default)]
    #[schema(required)]
    pub jobs: Vec<JobGuid>,
}

impl Reason {
    pub fn new(code: ReasonCode, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            since: None,
            next_look_at: None,
            expected_end_at: None,
            numbers: BTreeMap::new(),
            jobs: Vec::new(),
        }
    }

    #[must_use]
    pub fn since(self, since: impl Into<Option<Timestamp>>) -> Self {
        Self { since: since.into(), ..self }
    }

    #[must_use]
    pub fn next_look_at(self, at: impl Into<Option<Timestamp>>) -> Self {
        Self { next_look_at: at.into(), ..self }
    }

    #[must_use]
    pub fn number(mut self, name: &str, value: impl Into<u64>) -> Self {
        self.numbers.insert(name.to_owned(), value.into());
        self
    }
}
