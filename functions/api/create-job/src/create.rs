//! Creates a job: checks the request and the limits of active jobs, detects the source, admits the job, and wakes the
//! splitter.
//!
//! All decisions come before the first write. One transaction writes everything, and only then the message is sent. If
//! the process dies in between, the job exists, and the sweep sends the message. Items that came with the request are
//! stored before the transaction, under the name of the new job: if it is not created, nothing names the object.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_api::request::{DedupeBy, JobSource};
use rowmill_core::job_types::{EXPIRES_IN_PARAM, IMPORT, JobTypes, by_path, other_expiry, written_dataset};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, Priority};
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::model::owner_priorities::OwnerPriorities;
use rowmill_core::model::records::dataset_of;
use rowmill_core::model::spec::{Source, Spec};
use rowmill_core::model::warnings::{self, Warning};
use rowmill_core::ports::processor::{InputKind, JobType, ParamsError};
use rowmill_core::ports::{
    Admission, Ceilings, Clock, Created, Dedupe, Entropy, Idempotency, JobStore, NewJob, ObjectLists, Objects,
    OutstandingUploads, PortError, Queue, RecordStore, UploadStore, found,
};
use rowmill_core::text::{Head, SCANNER_VERSION};
use rowmill_settings::OtherBuckets;

use crate::awaits::or_awaited;
pub use crate::error::CreateJobError;
pub use crate::limits::CreateLimits;
use crate::list_text::{ListText, Texts};
use crate::params::check_params;
use crate::request::{CreateJobRequest, InvalidField, check, check_dedupe, check_idempotency_key, fingerprint};
use crate::source::{self, DetectedSource, SourceDetector};
use crate::{chunk_size, dedupe, items, tallies_ahead};

/// The use case and the ports it works through.
pub struct Creator {
    pub jobs: Arc<dyn JobStore>,
    pub uploads: Arc<dyn UploadStore>,
    /// The uploads' objects, to detect their formats.
    pub objects: Arc<dyn Objects>,
    pub outstanding: Arc<dyn OutstandingUploads>,
    /// The datasets, to see which ones exist.
    pub records: Arc<dyn RecordStore>,
    /// The jobs queue, which invokes the splitter.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    /// All job types, to check params with.
    pub job_types: JobTypes,
    pub clock: Arc<dyn Clock>,
    /// Generates the names of jobs.
    pub entropy: Arc<dyn Entropy>,
    pub limits: CreateLimits,
    pub type_limits: Arc<JobTypeLimits>,
    pub owner_priorities: OwnerPriorities,
    /// The external buckets that jobs may use, and the lists of their objects.
    pub buckets: OtherBuckets,
    pub lists: Arc<dyn ObjectLists>,
}

/// The answer to a request.
#[derive(Clone, PartialEq, Debug)]
pub struct Accepted {
    pub job: Job,
    /// True if it is a job of another request that does the same.
    pub is_same: bool,
}

impl Accepted {
    const fn new(job: Job) -> Self {
        Self { job, is_same: false }
    }
}

/// Maximum number of tries to create a job with a dedupe key.
const DEDUPE_TRIES: usize = 3;

/// The longest `resultsTo.prefix`, in bytes. A key takes 1,024, and a name of a result 255.
const RESULTS_PREFIX_MAX_BYTES: usize = 512;

enum Prepared {
    /// It needs a new job.
    New(Box<NewJob>),
    /// This job does the same.
    Same(Box<Job>),
}

/// The request, checked: what its job will be.
pub(crate) struct Specified {
    pub spec: Spec,
    pub texts: Texts,
    /// Warnings for the owner, apart from those about the names of the columns.
    pub warnings: Vec<Warning>,
}

/// Result of a look-up by dedupe key.
enum Deduped {
    /// This job has it.
    Same(Box<Job>),
    /// No job that is of use has it.
    Free(Dedupe),
}

impl Creator {
    /// The job of this request, see [`accept`](Self::accept).
    pub async fn create(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
        idempotency_key: Option<&str>,
    ) -> Result<Job, CreateJobError> {
        self.accept(owner, request, idempotency_key).await.map(|accepted| accepted.job)
    }

    /// Creates the job of this request, or finds the job that the same request created before, or one that does the
    /// same if the request asks for it.
    ///
    /// # Errors
    /// See [`CreateJobError`]; no job is written then.
    pub async fn accept(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
        idempotency_key: Option<&str>,
    ) -> Result<Accepted, CreateJobError> {
        check(request, &self.limits)?;
        check_dedupe(request)?;
        let mut idempotency = None;
        if let Some(key) = idempotency_key {
            check_idempotency_key(key)?;
            let (_, fingerprint) = idempotency.insert((key, fingerprint(request)));
            if let Some((job, known)) = self.jobs.remembered(owner, key, self.clock.now()).await? {
                let job = if known == *fingerprint { self.before(job).await } else { Err(CreateJobError::KeyReused) };
                return job.map(Accepted::new);
            }
        }
        for _ in 0..DEDUPE_TRIES {
            let new = match self.prepare(owner, request, idempotency.clone()).await? {
                Prepared::New(new) => new,
                Prepared::Same(job) => return self.same(owner, idempotency, *job).await,
            };
            match self.jobs.create(&new).await {
                Ok(Created::New) => return Ok(Accepted::new(self.woken(new.job).await)),
                Ok(Created::Before(job)) => return self.before(job).await.map(Accepted::new),
                // Another request was first. Its job is found next time, unless it has been stopped by then.
                Ok(Created::Same(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(PortError::unavailable("creating the job", "jobs of the same dedupe key begin and end all the time").into())
    }

    /// The answer with a job that does the same. Its request has a key: that is remembered first, so that a repetition
    /// has this answer too once the job is stopped.
    async fn same(
        &self,
        owner: &Owner,
        idempotency: Option<(&str, String)>,
        job: Job,
    ) -> Result<Accepted, CreateJobError> {
        if let Some(asked) = idempotency {
            let now = self.clock.now();
            let mut wanted = self.remembered_as(asked, now);
            // Not for longer than the job is kept.
            wanted.expires_at = job.expires_at().map_or(wanted.expires_at, |at| wanted.expires_at.min(at));
            let first = self.jobs.remember(owner, &wanted, job.job_guid, now).await?;
            if first != job.job_guid {
                return self.before(first).await.map(Accepted::new);
            }
        }
        Ok(Accepted { is_same: true, ..Accepted::new(self.woken(job).await) })
    }

    fn remembered_as(&self, (key, fingerprint): (&str, String), now: Timestamp) -> Idempotency {
        Idempotency { key: key.to_owned(), fingerprint, expires_at: now + self.limits.idempotency }
    }

    /// The job that an earlier try of the same request created. That try may have died before it sent the message, so
    /// the message is sent again while the job is waiting. A repeated message has no effect.
    async fn before(&self, job: JobGuid) -> Result<Job, CreateJobError> {
        match self.jobs.job(job).await? {
            job if job.is_gone(self.clock.now()) => Err(PortError::NotFound.into()),
            job => Ok(self.woken(job).await),
        }
    }

    /// The job, after its message was sent if it is waiting.
    pub(crate) async fn woken(&self, job: Job) -> Job {
        if job.status() == Status::Waiting {
            self.wake_splitter(&job).await;
        }
        job
    }

    /// A failure to send is only logged: the job exists, and the sweep sends the message.
    async fn wake_splitter(&self, job: &Job) {
        if let Err(error) = self.splits.send(&[SplitMessage::of(job)]).await {
            tracing::error!(job.id = %job.job_guid, error = &error as &dyn std::error::Error, "job created, message not sent");
        }
    }

    /// Checks the request against everything that is stored, and stores its items if it has any.
    async fn prepare(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
        idempotency: Option<(&str, String)>,
    ) -> Result<Prepared, CreateJobError> {
        let job_type = self.job_type(request)?;
        let priority = self.priority(owner, request)?;
        // Before the work on the file: a refusal must cost as little as the request. A job that exists needs no slot.
        if request.dedupe.is_none() {
            self.refuse_if_full(owner, request).await?;
        }
        self.check_results_to(owner, request)?;
        let now = self.clock.now();
        let Specified { mut spec, texts, warnings: found } =
            self.specified(owner, request, &**job_type, self.entropy.job_guid(now), now).await?;
        let awaits = self.awaits(owner, request, &spec.source, now).await?;
        let dedupe = match request.dedupe.and_then(|DedupeBy::File| dedupe::key(&spec, &texts.first.bytes, request)) {
            None => None,
            Some(key) => match self.deduped(owner, key, now).await? {
                Deduped::Same(job) => return Ok(Prepared::Same(job)),
                Deduped::Free(dedupe) => {
                    self.refuse_if_full(owner, request).await?;
                    Some(dedupe)
                }
            },
        };
        self.store_texts(&mut spec, texts).await?;
        let idempotency = idempotency.map(|asked| self.remembered_as(asked, now));
        let mut job = self.job_row(&spec, request, priority).awaiting(awaits);
        warnings::add(&mut job.warnings, found);
        let ceilings = self.ceilings(request);
        Ok(Prepared::New(Box::new(NewJob { job, spec, ceilings, idempotency, dedupe })))
    }

    /// The spec of the request's job, with the beginning of its text. Writes nothing.
    pub(crate) async fn specified(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
        job_type: &dyn JobType,
        job_guid: JobGuid,
        now: Timestamp,
    ) -> Result<Specified, CreateJobError> {
        let detected = match (job_type.input(), &request.items) {
            (InputKind::File, None) => or_awaited(request, self.detector(now).file(owner, request).await)?,
            (InputKind::File, Some(items)) => source::text(items::text_of(request, items)?),
            (InputKind::Files, _) => {
                source::refuse_items(request)?;
                or_awaited(request, self.detector(now).unread(owner, request).await)?
            }
            (InputKind::Dataset, _) => source::dataset(request)?,
            (InputKind::Keys, _) => return Err(by_path(job_type.name()).into()),
            (InputKind::None, _) => {
                source::refuse_input(request, "has no input")?;
                source::one_item()
            }
        };
        self.specified_over(detected, owner, request, job_type, job_guid, now).await
    }

    /// The spec of the request's job over this source.
    pub(crate) async fn specified_over(
        &self,
        detected: DetectedSource,
        owner: &Owner,
        request: &CreateJobRequest,
        job_type: &dyn JobType,
        job_guid: JobGuid,
        now: Timestamp,
    ) -> Result<Specified, CreateJobError> {
        let DetectedSource { source, inputs, head, warnings, first, .. } = detected;
        let mut spec = self.spec(job_guid, owner, request, source, head, now);
        let (listed, inputs) = inputs.map(ListText::unstored).unzip();
        spec.inputs = listed;
        let processor = job_type.prepare(&spec)?;
        // The job that it follows may make the dataset.
        if let (Source::Dataset { dataset, .. }, None) = (&spec.source, request.after) {
            self.refuse_unknown_dataset(owner, dataset).await?;
        }
        self.refuse_other_expiry(&spec).await?;
        spec.output = processor.output();
        let items = chunk_size::Items {
            of_task: job_type.tasks().map(|terms| terms.items),
            cost: processor.cost(),
            batch: processor.batch_items(),
            have_outputs: spec.output.is_some(),
        };
        spec.limits = chunk_size::of_items(items, &self.limits, (&spec.source, &first));
        Ok(Specified { spec, texts: Texts { first, inputs }, warnings })
    }

    /// The job that has this dedupe key, if it is of use, or else what takes its place.
    async fn deduped(&self, owner: &Owner, key: String, now: Timestamp) -> Result<Deduped, PortError> {
        let known = self.jobs.deduped(owner, &key, now).await?;
        if let Some(job) = known {
            match self.jobs.owned(owner, job, now).await {
                // It is active or completed.
                Ok(job) if !job.is_stopped() => return Ok(Deduped::Same(Box::new(job))),
                Ok(_) | Err(PortError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        // The job is kept for at least as long: its retention begins when it ends.
        let expires_at = now + self.limits.jobs.retention;
        Ok(Deduped::Free(Dedupe { key, replaces: known, expires_at }))
    }

    /// The priority of the job: that of the request, else `normal`, or less if the owner may use no more.
    pub(crate) fn priority(&self, owner: &Owner, request: &CreateJobRequest) -> Result<Priority, CreateJobError> {
        match request.priority {
            None => Ok(Priority::default().at_most(self.owner_priorities.highest(owner))),
            Some(asked) => Ok(self.owner_priorities.allow(owner, asked)?),
        }
    }

    pub(crate) async fn refuse_if_full(&self, owner: &Owner, request: &CreateJobRequest) -> Result<(), CreateJobError> {
        let reached = self.jobs.taken(owner, &request.job_type).await?.reached(self.ceilings(request));
        let Some(full) = reached else { return Ok(()) };
        // One that waits takes no shared slot yet.
        let may_pass = full.admission != Admission::OwnerFull && self.may_wait(owner, request).await?;
        if may_pass { Ok(()) } else { Err(CreateJobError::Full(full)) }
    }

    /// True if the job may have to wait before it starts.
    async fn may_wait(&self, owner: &Owner, request: &CreateJobRequest) -> Result<bool, PortError> {
        let waits = |source: &JobSource| source.files.is_none();
        if request.after.is_some() || request.source.as_ref().is_some_and(waits) {
            return Ok(true);
        }
        let Some(file_guid) = request.file_guid else { return Ok(false) };
        let upload = found(self.uploads.owned(owner, file_guid, self.clock.now()).await)?;
        Ok(upload.is_some_and(|upload| upload.is_fetching()))
    }

    pub(crate) async fn refuse_unknown_dataset(&self, owner: &Owner, dataset: &str) -> Result<(), CreateJobError> {
        if self.records.opened(&dataset_of(owner, dataset)).await?.is_some() {
            return Ok(());
        }
        let message = format!(
            "names the dataset `{dataset}`, but there is none of this name. Correct the name, or import rows into it first."
        );
        Err(ParamsError::new("params.dataset", message).into())
    }

    /// The first import into a dataset has decided how long its records are kept.
    async fn refuse_other_expiry(&self, spec: &Spec) -> Result<(), CreateJobError> {
        if spec.job_type != IMPORT {
            return Ok(());
        }
        let if_new = written_dataset(spec)?;
        if if_new.expires_in.is_none() {
            return Ok(());
        }
        let there = self.records.opened(&if_new.name).await?;
        match there.and_then(|there| other_expiry(&if_new, &there)) {
            None => Ok(()),
            Some(why) => {
                let message = format!("{why}. Leave it out, or import into another dataset.");
                Err(ParamsError::new(format!("params.{EXPIRES_IN_PARAM}"), message).into())
            }
        }
    }

    /// Checks that the results of this owner's job may be stored where the request wants them.
    pub(crate) fn check_results_to(&self, owner: &Owner, request: &CreateJobRequest) -> Result<(), InvalidField> {
        let Some(to) = &request.results_to else { return Ok(()) };
        let refused = |field: &str, message: String| InvalidField::new(format!("resultsTo.{field}"), message);
        self.buckets.outputs.check_bucket(&to.bucket).map_err(|why| refused("bucket", why.to_owned()))?;
        if to.prefix.len() > RESULTS_PREFIX_MAX_BYTES {
            let message = format!("has more than the maximum of {RESULTS_PREFIX_MAX_BYTES} bytes.");
            return Err(refused("prefix", message));
        }
        self.buckets.outputs.check_key(owner, &to.prefix).map_err(|why| refused("prefix", why))
    }

    pub(crate) fn ceilings(&self, request: &CreateJobRequest) -> Ceilings {
        self.limits.ceilings.of_type(self.type_limits.of(&request.job_type))
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
        job_guid: JobGuid,
        owner: &Owner,
        request: &CreateJobRequest,
        source: Source,
        head: Head,
        now: Timestamp,
    ) -> Spec {
        Spec {
            job_guid,
            owner: owner.clone(),
            job_type: request.job_type.clone(),
            created_at: now,
            source,
            inputs: None,
            head,
            limits: self.limits.chunks,
            scanner_version: SCANNER_VERSION,
            params: request.params.clone(),
            max_concurrency: request.max_concurrency,
            output: None,
            results_to: request.results_to.clone(),
            request: serde_json::to_value(request.to_repeat()).ok(),
            new_dataset_partitions: self.limits.new_dataset_partitions,
        }
    }

    pub(crate) const fn detector(&self, now: Timestamp) -> SourceDetector<'_> {
        let (uploads, objects, outstanding, jobs) = (&self.uploads, &self.objects, &self.outstanding, &self.jobs);
        let header_max_bytes = self.limits.header_max_bytes;
        SourceDetector { uploads, objects, outstanding, jobs, inputs: &self.buckets.inputs, now, header_max_bytes }
    }

    pub(crate) fn job_row(&self, spec: &Spec, request: &CreateJobRequest, priority: Priority) -> Job {
        let now = spec.created_at;
        let deadline = request.deadline_seconds.unwrap_or(self.limits.deadlines.default_seconds);
        let deadline_at = now + Duration::from_secs(deadline);
        let start_by = request.start_within_seconds.map(|seconds| now + Duration::from_secs(seconds));
        let job = Job { start_by, ..Job::waiting(spec, deadline_at, now + self.limits.recovery.stale) };
        let of_type = self.type_limits.of(&request.job_type);
        let tallies_ahead = tallies_ahead::of_job(&self.limits, of_type, priority, request);
        Job {
            tolerance: request.tolerance.map(Into::into),
            priority,
            tallies_ahead,
            metadata: request.metadata.clone(),
            keep_seconds: request.keep_seconds,
            wake_at: job.wake_at.map(|at| job.before_deadline(at, now)),
            ..job
        }
    }
}
