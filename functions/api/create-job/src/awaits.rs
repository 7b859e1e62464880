//! What a job waits for: found out when it is created, and looked at by `start-job` until it is there.

use jiff::Timestamp;
use rowmill_api::request::{JobInput, JobSource, ObjectSource};
use rowmill_core::model::ids::Owner;
use rowmill_core::model::job::{Awaits, Job, Stop, StopCode};
use rowmill_core::model::spec::{AwaitedFile, Source, Spec};
use rowmill_core::model::warnings::Warning;
use rowmill_core::ports::processor::InputKind;
use rowmill_core::ports::{PortError, found};

use crate::create::{Creator, Specified};
use crate::error::CreateJobError;
use crate::list_text::ListText;
use crate::request::{CreateJobRequest, InvalidField};
use crate::source::DetectedSource;
use crate::{input_manifest, inputs, source};

/// Result of a look at what a job waits for.
#[derive(Debug)]
pub enum Look {
    /// This is not there yet.
    NotYet(Awaits),
    /// It will never be there.
    Never(Stop),
    /// All is there: the spec of the job, and warnings about its file.
    Found(Box<Spec>, Vec<Warning>),
}

impl Creator {
    /// What a new job over this source waits for.
    ///
    /// # Errors
    /// The job that it is to follow is unknown, or has not ended well; or the request asks for one job per file.
    pub(crate) async fn awaits(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
        source: &Source,
        now: Timestamp,
    ) -> Result<Option<Awaits>, CreateJobError> {
        let awaits = match (request.after, source) {
            (Some(after), _) => {
                let job = found(self.jobs.owned(owner, after, now).await)?;
                let job = job.ok_or(CreateJobError::UnknownJob { field: "after", job: after })?;
                refuse_bad_end("after", &job)?;
                Some(Awaits::Job(after))
            }
            (None, Source::Awaited(AwaitedFile::Result { job, .. })) => Some(Awaits::Job(*job)),
            (None, Source::Awaited(AwaitedFile::Upload(_))) => Some(Awaits::File),
            (
                None,
                Source::Awaited(AwaitedFile::Archive(_) | AwaitedFile::Manifest(_) | AwaitedFile::Objects { .. }),
            ) => Some(Awaits::Files),
            (None, _) => None,
        };
        match (awaits, request.dedupe) {
            (Some(_), Some(_)) => {
                let message = "cannot be used for a job that waits: its file is compared when it is created.";
                Err(InvalidField::new("dedupe", message).into())
            }
            _ => Ok(awaits),
        }
    }

    /// Looks whether all that a job waits for is there, and stores its spec if it is.
    ///
    /// # Errors
    /// A port has failed: look again.
    pub async fn look(&self, job: &Job) -> Result<Look, PortError> {
        let now = self.clock.now();
        let never = |code, message| Ok(Look::Never(Stop::because(code, message, now)));
        let spec = self.jobs.spec(job.job_guid).await?;
        if let Some(Awaits::Job(before)) = job.awaits {
            let needs_good_end = match &spec.source {
                Source::Awaited(AwaitedFile::Result { kind, .. }) => kind.needs_good_end(),
                _ => true,
            };
            let ended = found(self.jobs.owned(&job.owner, before, now).await)?;
            let failed =
                |how: &str| never(StopCode::PrecedingFailed, format!("job {before}, for which it waited, {how}"));
            match ended.map(|before| before.has_ended_well()) {
                Some(None) => return Ok(Look::NotYet(Awaits::Job(before))),
                Some(Some(false)) if needs_good_end => return failed("did not end well"),
                Some(Some(_)) => {}
                None => return failed("has expired"),
            }
        }
        match self.find(job, spec).await {
            Ok((spec, warnings)) => Ok(Look::Found(Box::new(spec), warnings)),
            Err(CreateJobError::UploadFetching(_)) => Ok(Look::NotYet(Awaits::File)),
            // It was redriven since.
            Err(CreateJobError::JobActive(before)) => Ok(Look::NotYet(Awaits::Job(before))),
            Err(CreateJobError::Port(error)) => Err(error),
            Err(error) => never(StopCode::SourceFailed, error.to_string()),
        }
    }

    /// The spec of a job, with its file if that was awaited.
    async fn find(&self, job: &Job, spec: Spec) -> Result<(Spec, Vec<Warning>), CreateJobError> {
        let (file_guid, source) = match spec.source {
            Source::Awaited(AwaitedFile::Upload(file_guid) | AwaitedFile::Archive(file_guid)) => {
                (Some(file_guid), None)
            }
            Source::Awaited(AwaitedFile::Result { job, kind }) => (None, Some(JobSource::of_result(job, kind))),
            Source::Awaited(AwaitedFile::Manifest(file_guid)) => {
                (None, Some(JobSource { manifest: Some(file_guid), ..JobSource::default() }))
            }
            Source::Awaited(AwaitedFile::Objects { bucket, prefix, suffix }) => {
                let s3 = Some(ObjectSource { bucket, prefix, suffix: Some(suffix) });
                (None, Some(JobSource { s3, ..JobSource::default() }))
            }
            Source::Dataset { ref dataset, .. } => {
                self.refuse_unknown_dataset(&job.owner, dataset).await?;
                return Ok((spec, Vec::new()));
            }
            Source::File(_) | Source::Packed { .. } | Source::Files(_) => return Ok((spec, Vec::new())),
        };
        let (job_type, params, asked) = (spec.job_type, spec.params, spec.request);
        let request = CreateJobRequest {
            job_type,
            file_guid,
            source,
            params,
            max_concurrency: spec.max_concurrency,
            results_to: spec.results_to,
            ..CreateJobRequest::default()
        };
        let job_type = &**self.job_type(&request)?;
        let (detector, owner) = (self.detector(self.clock.now()), &job.owner);
        let takes_files = job_type.input() == InputKind::Files;
        let detected = match takes_files {
            true => detector.unread(owner, &request).await?,
            false => detector.file(owner, &request).await?,
        };
        let list = match &detected.source {
            Source::Awaited(AwaitedFile::Archive(file_guid)) => Some(detector.members(owner, *file_guid).await?),
            Source::Awaited(AwaitedFile::Manifest(file_guid)) => {
                let list = ListText::of(job_type.input());
                Some(input_manifest::list(&detector, owner, *file_guid, self.limits.chunks, list).await?)
            }
            Source::Awaited(AwaitedFile::Objects { bucket, prefix, suffix }) => {
                let list = ListText::of(job_type.input());
                Some(inputs::list(&*self.lists, (bucket, prefix, suffix), list).await?)
            }
            _ => None,
        };
        let detected = match list {
            Some(list) if takes_files => source::listing(list),
            Some(list) => source::many(list),
            None => detected,
        };
        let specified =
            self.specified_over(detected, &job.owner, &request, job_type, job.job_guid, spec.created_at).await?;
        let Specified { mut spec, texts, warnings } = specified;
        spec.request = asked;
        self.store_texts(&mut spec, texts).await?;
        Ok((self.jobs.put_found(&spec).await?, warnings))
    }
}

/// The source, or that of a job that waits: for an upload that is fetched, or for the result of a job that runs.
pub(crate) fn or_awaited(
    request: &CreateJobRequest,
    detected: Result<DetectedSource, CreateJobError>,
) -> Result<DetectedSource, CreateJobError> {
    match detected {
        Err(CreateJobError::UploadFetching(file_guid)) if request.source.is_none() => {
            source::awaited(request, AwaitedFile::Upload(file_guid))
        }
        Err(CreateJobError::JobActive(job)) => match source::input_of(request)? {
            Some(JobInput::Result { kind, .. }) => source::awaited(request, AwaitedFile::Result { job, kind }),
            _ => Err(CreateJobError::JobActive(job)),
        },
        detected => detected,
    }
}

/// Refuses a job that has ended, and not well, as what a new job follows or reads.
pub(crate) fn refuse_bad_end(field: &str, job: &Job) -> Result<(), InvalidField> {
    if job.has_ended_well() != Some(false) {
        return Ok(());
    }
    let (guid, status) = (job.job_guid, job.status().as_str());
    Err(InvalidField::new(field, format!("names a job that has not ended well: {guid} is {status}.")))
}
