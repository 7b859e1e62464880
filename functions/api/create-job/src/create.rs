//! Creates a job: checks the request and the limits of active jobs, detects the source, admits the job, and wakes the
//! splitter.
//!
//! All decisions come before the first write. One transaction writes everything, and only then the message is sent. If the
//! process dies in between, the job exists, and the sweep sends the message.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::lanes::JobTypeLimits;
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::model::spec::{DRY_RUN, Source, Spec};
use rowmill_core::model::states::Status;
use rowmill_core::model::warnings;
use rowmill_core::ports::processor::{InputKind, JobType, ParamsError};
use rowmill_core::ports::{
    Clock, CreateError, Created, Entropy, Idempotency, JobStore, NewJob, Objects, OutstandingUploads, Queue,
    UploadStore,
};
use rowmill_core::text::{Head, SCANNER_VERSION};

use crate::chunk_size;
pub use crate::error::CreateJobError;
pub use crate::limits::CreateLimits;
use crate::request::{CreateJobRequest, check, check_idempotency_key, fingerprint};
use crate::source::{self, DetectedSource, SourceDetector};

/// The use case and the ports it works through.
pub struct Creator {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// The uploads.
    pub uploads: Arc<dyn UploadStore>,
    /// The uploads' objects, to detect their formats.
    pub objects: Arc<dyn Objects>,
    /// The announced uploads that are not completed.
    pub outstanding: Arc<dyn OutstandingUploads>,
    /// The jobs queue, which invokes the splitter.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    /// All job types, to check params with.
    pub job_types: JobTypes,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Generates the names of jobs.
    pub entropy: Arc<dyn Entropy>,
    /// The limits.
    pub limits: CreateLimits,
    /// The limits that job types have of their own.
    pub type_limits: JobTypeLimits,
}

impl Creator {
    /// Creates the job of this request, or finds the job that the same request created before.
    ///
    /// # Errors
    /// See [`CreateJobError`]; nothing is written then.
    pub async fn create(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
        idempotency_key: Option<&str>,
    ) -> Result<Job, CreateJobError> {
        check(request, self.limits.deadlines.maximum_seconds)?;
        let fingerprint = fingerprint(request);
        if let Some(key) = idempotency_key {
            check_idempotency_key(key)?;
            if let Some((job, known)) = self.jobs.remembered(owner, key, self.clock.now()).await? {
                return if known == fingerprint { self.before(job).await } else { Err(CreateJobError::KeyReused) };
            }
        }
        let new = self.new_job(owner, request, idempotency_key.map(|key| (key, fingerprint))).await?;
        match self.jobs.create(&new).await {
            Ok(Created::New) => {
                self.wake_splitter(&new.job).await;
                Ok(new.job)
            }
            Ok(Created::Before(job)) => self.before(job).await,
            Err(CreateError::Full(full)) => Err(CreateJobError::Full(full)),
            Err(CreateError::KeyReused) => Err(CreateJobError::KeyReused),
            Err(CreateError::Port(error)) => Err(error.into()),
        }
    }

    /// The job that an earlier try of the same request created. That try may have died before it sent the message, so the
    /// message is sent again while the job is waiting. A repeated message has no effect.
    async fn before(&self, job: JobGuid) -> Result<Job, CreateJobError> {
        let job = self.jobs.job(job).await?;
        if job.status == Status::Waiting {
            self.wake_splitter(&job).await;
        }
        Ok(job)
    }

    /// A failure to send is only logged: the job exists, and the sweep sends the message.
    async fn wake_splitter(&self, job: &Job) {
        if let Err(error) = self.splits.send(&[SplitMessage::of(job)]).await {
            tracing::error!(job.id = %job.job_guid, error = &error as &dyn std::error::Error, "job created, message not sent");
        }
    }

    async fn new_job(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
        idempotency: Option<(&str, String)>,
    ) -> Result<NewJob, CreateJobError> {
        let job_type = self.job_type(request)?;
        // Before the work on the file: a refusal must cost as little as the request.
        let ceilings = self.limits.ceilings.of_type(self.type_limits.of(&request.job_type));
        if let Some(full) = self.jobs.reached(owner, &request.job_type, ceilings).await? {
            return Err(CreateJobError::Full(full));
        }
        let now = self.clock.now();
        let DetectedSource { source, head, warnings: found, first, .. } = match job_type.input() {
            InputKind::File => self.detector(now).file(owner, request).await?,
            InputKind::Dataset => source::dataset(request)?,
        };
        let mut spec = self.spec(owner, request, source, head, now);
        let processor = job_type.prepare(&spec)?;
        spec.output = processor.output();
        // The outputs of a chunk are held in memory, so a chunk with outputs does not grow.
        if processor.is_fast() && spec.output.is_none() {
            spec.limits = chunk_size::of_fast_items(&self.limits, &spec.source, &first);
        }
        let idempotency = idempotency.map(|(key, fingerprint)| Idempotency {
            key: key.to_owned(),
            fingerprint,
            expires_at: now + self.limits.idempotency,
        });
        let mut job = self.job_row(&spec, request);
        warnings::add(&mut job.warnings, found);
        Ok(NewJob { job, spec, ceilings, idempotency })
    }

    /// The job type of a request, which knows all of its params.
    pub(crate) fn job_type(&self, request: &CreateJobRequest) -> Result<&Arc<dyn JobType>, CreateJobError> {
        let job_type = self.job_types.get(&request.job_type).ok_or_else(|| CreateJobError::UnknownJobType {
            name: request.job_type.chars().take(64).collect(),
            known: self.job_types.names().into_iter().map(str::to_owned).collect(),
        })?;
        check_params(request, &**job_type)?;
        Ok(job_type)
    }

    /// The spec of the request's job over this source, before the job type has prepared it.
    pub(crate) fn spec(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
        source: Source,
        head: Head,
        now: Timestamp,
    ) -> Spec {
        Spec {
            job_guid: self.entropy.job_guid(now),
            owner: owner.clone(),
            job_type: request.job_type.clone(),
            created_at: now,
            source,
            head,
            limits: self.limits.chunks,
            scanner_version: SCANNER_VERSION,
            params: request.params.clone(),
            tolerance: request.tolerance,
            max_concurrency: request.max_concurrency,
            output: None,
        }
    }

    pub(crate) const fn detector(&self, now: Timestamp) -> SourceDetector<'_> {
        let (uploads, objects, outstanding) = (&self.uploads, &self.objects, &self.outstanding);
        SourceDetector { uploads, objects, outstanding, now, header_max_bytes: self.limits.header_max_bytes }
    }

    fn job_row(&self, spec: &Spec, request: &CreateJobRequest) -> Job {
        let now = spec.created_at;
        let deadline = request.deadline_seconds.unwrap_or(self.limits.deadlines.default_seconds);
        let deadline_at = now + Duration::from_secs(deadline);
        let job = Job::waiting(spec, deadline_at, deadline_at.min(now + self.limits.recovery.stale));
        Job { metadata: request.metadata.clone(), ..job }
    }
}

/// The params of every job over an upload: how the file is read.
pub(crate) const FILE_PARAMS: [&str; 8] =
    ["format", "delimiter", "header", "headerRow", "skipRows", "encoding", "compression", "sheet"];

/// Rejects unknown params, so that a misspelled one does not go unnoticed.
fn check_params(request: &CreateJobRequest, job_type: &dyn JobType) -> Result<(), ParamsError> {
    if request.params.get(DRY_RUN).is_some_and(|dry_run| !dry_run.is_boolean()) {
        return Err(ParamsError::new(format!("params.{DRY_RUN}"), "must be true or false."));
    }
    if job_type.takes_any_params() {
        return Ok(());
    }
    let of_input: &[&str] = match job_type.input() {
        InputKind::File => &FILE_PARAMS,
        InputKind::Dataset => &[],
    };
    let known: Vec<&str> = job_type.params().iter().chain(of_input).chain(&[DRY_RUN]).copied().collect();
    match request.params.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(unknown_param(name, &format!("of `{}`. Its params are", request.job_type), &known)),
    }
}

/// The refusal of a param that is none `of_what`.
pub(crate) fn unknown_param(name: &str, of_what: &str, known: &[&str]) -> ParamsError {
    let name: String = name.chars().take(64).collect();
    ParamsError::new(format!("params.{name}"), format!("is not a param {of_what} {}.", known.join(", ")))
}
