//! All functions over in-memory ports: the whole pipeline in one process. The test holds the queues, and every port
//! call of the functions behind the queues, of `redrive-job` and of `sweep` can crash ([`Faults`]).

mod delivery;
mod doubles;
mod plain_type;
mod views;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cancel_job::change::Changer;
use cancel_job::error::ChangeError;
use complete_job::complete::Completer;
use create_job::create::{CreateJobError, Creator};
use create_job::request::CreateJobRequest;
use dead_letter::settle::DeadLetters;
use jiff::Timestamp;
use job_status::handler::JobPages;
use job_status::items::ItemPages;
use job_status::results::JobResults;
use job_status::tasks::TaskPages;
use job_status::why::JobReasons;
use process_items::process::ChunkProcessor;
use redrive_job::redrive::{RedriveJobError, RedriveRequest, Redriver};
use rowmill_api::job::JobReader;
use rowmill_core::items::audit::Auditor;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::{Job, Lease};
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::ports::processor::JobType;
use rowmill_core::ports::{Clock, JobStore, Jobs, RecordStore};
use rowmill_core::progress::update::update_job;
use rowmill_core::wiring::{Port, Ports};
use rowmill_testing::in_memory::ManualClock;
use serde_json::{Value, json};
use split_job::split::Splitter;
use start_job::starter::Starter;
use sweep::sweep::Sweeper;
use upload::upload::Uploads;
use work_task::lend::TaskWork;

use crate::faults::{CrashingPort, Faults};
use crate::use_cases::{Limits, UseCases};
pub use doubles::Doubles;
pub use plain_type::plain_type;

/// The whole pipeline over [`Doubles`].
pub struct World {
    doubles: Doubles,
    pub faults: Arc<Faults>,
    pub limits: Limits,
    pub uploads: Uploads,
    /// Like `uploads`, but it can crash.
    pub mortal_uploads: Uploads,
    pub creator: Creator,
    /// Like `creator`, but it can crash.
    pub mortal_creator: Arc<Creator>,
    pub splitter: Splitter,
    /// `start-job`. It can crash.
    pub starter: Starter,
    pub processor: ChunkProcessor,
    /// `work-task`. It can crash.
    pub task_work: TaskWork,
    pub completer: Completer,
    pub status: JobReader,
    /// `job-status`: failed and skipped items.
    pub items: ItemPages,
    pub results: JobResults,
    pub auditor: Auditor,
    pub reasons: JobReasons,
    /// `job-status`: who works on the tasks of a job.
    pub task_pages: TaskPages,
    /// `cancel-job`, to cancel.
    pub canceller: Changer,
    /// `cancel-job`. It can crash.
    pub changer: Changer,
    pub redriver: Redriver,
    pub dead_letters: DeadLetters,
    pub sweeper: Sweeper,
}

impl Deref for World {
    type Target = Doubles;

    fn deref(&self) -> &Doubles {
        &self.doubles
    }
}

impl World {
    /// A world with the built-in job types.
    pub fn new(limits: Limits) -> Self {
        Self::with_job_type(limits, |_| None)
    }

    /// A world with one more job type, which may use the world's clock.
    pub fn with_job_type(limits: Limits, job_type: impl FnOnce(&Arc<ManualClock>) -> Option<Arc<dyn JobType>>) -> Self {
        Self::with(limits, &JobTypeLimits::default(), job_type)
    }

    /// A world whose job types have limits of their own: the text of the parameter `JobTypes`.
    pub fn with_type_limits(limits: Limits, job_types: &str) -> Self {
        Self::with(limits, &JobTypeLimits::parse(job_types).expect("valid limits"), |_| None)
    }

    /// A world with one more job type, and limits of job types.
    pub fn with(
        limits: Limits,
        type_limits: &JobTypeLimits,
        job_type: impl FnOnce(&Arc<ManualClock>) -> Option<Arc<dyn JobType>>,
    ) -> Self {
        let (doubles, faults) = (Doubles::default(), Arc::new(Faults::default()));
        let Doubles { records, clock, .. } = &doubles;
        let added = job_type(clock);
        let job_types =
            |records: Arc<dyn RecordStore>| JobTypes::built_in(Some(records)).with(added.iter().map(Arc::clone));
        let api = UseCases { ports: doubles.ports(type_limits), limits, job_types: job_types(records.clone()) };
        let job_types = job_types(CrashingPort::new(records.clone(), &faults));
        let functions = UseCases { ports: doubles.crashing(type_limits, &faults), limits, job_types };
        let uploading = Ports {
            uploads: Port::given(CrashingPort::new(doubles.upload_rows.clone(), &faults)),
            outstanding: Port::given(CrashingPort::new(doubles.quotas.clone(), &faults)),
            ..functions.ports.clone()
        };
        let JobPages { jobs: status, items, results, audits: auditor, reasons, tasks: task_pages, .. } = api.pages();
        Self {
            uploads: api.uploads(),
            mortal_uploads: UseCases { ports: uploading, ..functions.clone() }.uploads(),
            creator: api.creator(),
            mortal_creator: Arc::new(functions.creator()),
            status,
            items,
            results,
            auditor,
            reasons,
            task_pages,
            canceller: api.changer(),
            changer: functions.changer(),
            redriver: functions.redriver(),
            splitter: functions.splitter(),
            starter: functions.starter(),
            processor: functions.processor(),
            task_work: functions.task_work(),
            completer: functions.completer(),
            dead_letters: functions.dead_letters(),
            sweeper: functions.sweeper(),
            limits,
            doubles,
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

    /// Uploads a CSV file.
    pub async fn store_csv(&self, bytes: impl Into<Bytes>) -> FileGuid {
        self.store("text/csv", bytes).await
    }

    /// Creates a job.
    ///
    /// # Errors
    /// The errors of the use case.
    pub async fn create(&self, job_type: &str, file_guid: FileGuid, params: Value) -> Result<Job, CreateJobError> {
        self.request(json!({ "jobType": job_type, "fileGuid": file_guid, "params": params })).await
    }

    /// Creates a job of type `validate` with these further fields of the request.
    pub async fn create_with(&self, file_guid: FileGuid, fields: Value) -> Job {
        let mut request = json!({ "jobType": "validate", "fileGuid": file_guid });
        let fields = fields.as_object().expect("fields").clone();
        request.as_object_mut().expect("a request").extend(fields);
        self.request(request).await.expect("a job")
    }

    /// Creates a job from the body of the request.
    ///
    /// # Errors
    /// The errors of the use case.
    pub async fn request(&self, request: Value) -> Result<Job, CreateJobError> {
        let request: CreateJobRequest = serde_json::from_value(request).expect("a request");
        self.creator.create(&Self::owner(), &request, None).await
    }

    /// Uploads a CSV file and creates a job of type `validate` on it.
    pub async fn validate_csv(&self, csv: impl Into<Bytes>) -> JobGuid {
        let file = self.store_csv(csv).await;
        self.create("validate", file, json!({})).await.expect("a job").job_guid
    }

    /// Redrives a job, with a corrected file if there is one.
    ///
    /// # Errors
    /// The errors of the use case.
    pub async fn redrive(&self, job: JobGuid, file_guid: Option<FileGuid>) -> Result<Job, RedriveJobError> {
        self.redrive_as(job, RedriveRequest { file_guid, ..RedriveRequest::default() }).await
    }

    /// Redrives a job as this request says.
    ///
    /// # Errors
    /// The errors of the use case.
    pub async fn redrive_as(&self, job: JobGuid, request: RedriveRequest) -> Result<Job, RedriveJobError> {
        self.redriver.redrive(&Self::owner(), job, &request).await
    }

    /// Redrives a job with this corrected file.
    pub async fn correct(&self, job: JobGuid, csv: impl Into<Bytes>) {
        let corrected = self.store_csv(csv).await;
        self.redrive(job, Some(corrected)).await.expect("the file fits");
    }

    /// A run of `split-job` takes a job up for this time, and does nothing else.
    pub async fn take_up(&self, job: JobGuid, for_time: Duration) {
        let lease = Lease { holder: self.splitter.entropy.run_id(), until: self.deadline_in(for_time) };
        let now = self.clock.now();
        change(&*self.jobs, job, |job| job.take(lease, now)).await;
    }

    pub async fn cancel(&self, job: JobGuid) -> Job {
        self.canceller.cancel(&Self::owner(), job, false).await.expect("the job is active")
    }

    pub async fn pause(&self, job: JobGuid) -> Job {
        self.changer.pause(&Self::owner(), job).await.expect("the job is active")
    }

    pub async fn resume(&self, job: JobGuid) -> Job {
        self.changer.resume(&Self::owner(), job).await.expect("the job is active")
    }

    /// Gives a job the limits in the body of this request.
    ///
    /// # Errors
    /// The errors of the use case.
    pub async fn retune(&self, job: JobGuid, limits: Value) -> Result<Job, ChangeError> {
        let limits = serde_json::from_value(limits).expect("a request");
        self.changer.retune(&Self::owner(), job, &limits).await
    }

    /// Sends the message that continues the job, as its resume does.
    pub async fn send_split(&self, job: JobGuid) {
        let row = self.jobs.job(job).await.expect("the job is there");
        self.changer.splits.send(&[SplitMessage::of(&row)]).await.expect("in-memory ports do not fail");
    }

    /// A time limit that leaves time for everything.
    pub fn deadline(&self) -> Timestamp {
        self.deadline_in(self.limits.split.lease())
    }

    /// A time limit after this time.
    pub fn deadline_in(&self, time: Duration) -> Timestamp {
        self.clock.now() + time
    }
}

/// Carries out a transition of a job.
///
/// # Panics
/// If it does not start from this job.
pub async fn change(jobs: &dyn JobStore, job: JobGuid, transition: impl Fn(&Job) -> Option<Job> + Send + Sync) -> Job {
    let seen = jobs.job(job).await.expect("the job is there");
    update_job(jobs, &seen, transition).await.expect("the store is there").done().expect("the transition starts here")
}
