//! Creating a job: looking the file over, admitting the job, and waking the splitter.
//!
//! Everything is decided before anything is written, and everything is written in one transaction; only then the message
//! leaves. If the process dies in between, the job is there and the sweep sends the message again.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::model::packing::Packing;
use rowmill_core::model::spec::{DRY_RUN, Source, SourceFile, Spec};
use rowmill_core::model::states::Status;
use rowmill_core::model::upload::{Upload, UploadState};
use rowmill_core::ports::processor::{InputKind, JobType, ParamsError};
use rowmill_core::ports::{
    Ceilings, Clock, CreateError, Created, Entropy, Full, Idempotency, JobStore, NewJob, Objects, PortError, Queue,
    UploadStore,
};
use rowmill_core::text::{ChunkLimits, Dialect, Format, Head, HeadError, SCANNER_VERSION, TextParams, read_head};
use rowmill_formats::{
    DecodeError, FormatError, Hints, Limits, TextStream, decode_prefix, detect, port_error, text_content_type,
    text_file_name, text_format,
};
use serde_json::{Map, Value};

use crate::request::{CreateJobRequest, InvalidField, check, check_idempotency_key, fingerprint};

/// The use case and the ports it works through.
pub struct Creator {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// The uploads.
    pub uploads: Arc<dyn UploadStore>,
    /// Their objects, of which the first bytes are looked at.
    pub objects: Arc<dyn Objects>,
    /// Where the splitter listens.
    pub splits: Arc<dyn Queue<SplitMessage>>,
    /// All job types, to check params with.
    pub job_types: JobTypes,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names for jobs.
    pub entropy: Arc<dyn Entropy>,
    /// The limits.
    pub limits: CreateLimits,
}

/// What a job may take.
#[derive(Clone, Copy, Debug)]
pub struct CreateLimits {
    /// Where a chunk ends.
    pub chunks: ChunkLimits,
    /// How many jobs may be active at once.
    pub ceilings: Ceilings,
    /// The longest header, in bytes; so many bytes of the file are looked at.
    pub header_max_bytes: u64,
    /// After how many seconds a job is stopped, unless its client says otherwise.
    pub default_deadline_seconds: u64,
    /// The most a client may say.
    pub maximum_deadline_seconds: u64,
    /// How long a repeated request is recognised.
    pub idempotency: Duration,
    /// After what time without a sign of life the sweep looks at a job.
    pub stale: Duration,
    /// The longest a client that is turned away is told to wait.
    pub retry_after_max: Duration,
}

/// Why no job was created.
#[derive(Debug, thiserror::Error)]
pub enum CreateJobError {
    /// A field of the request is wrong.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// There is no such job type.
    #[error("there is no job type `{name}`; there are {}", known.join(", "))]
    UnknownJobType {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The caller has no such upload.
    #[error("there is no upload {0}; it may have expired: upload the file again")]
    UnknownUpload(FileGuid),
    /// The upload is not there whole.
    #[error("upload {0} is not complete: send its bytes first")]
    UploadIncomplete(FileGuid),
    /// The upload is not what was announced.
    #[error("upload {file} has {stored} bytes where {announced} were announced: upload the file again")]
    UploadSize {
        /// The upload.
        file: FileGuid,
        /// What was announced.
        announced: u64,
        /// What is there.
        stored: u64,
    },
    /// The upload is another one than was stored.
    #[error("upload {0} was replaced after it was complete: upload the file again")]
    UploadChanged(FileGuid),
    /// The file cannot be read as what it is said to be.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// It is not packed as it is said to be, or in no way that is known.
    #[error(transparent)]
    Packing(#[from] FormatError),
    /// What it is packed in cannot be read.
    #[error(transparent)]
    Packed(#[from] DecodeError),
    /// The job type cannot work with the params.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// A ceiling is reached.
    #[error("{}", .0.admission.advice())]
    Full(Full),
    /// The idempotency key was used for another request.
    #[error("the Idempotency-Key was used for another request; use a new key for a new job")]
    KeyReused,
    /// Something cannot be reached.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl Creator {
    /// Creates the job that `request` asks for, or finds the one that the same request created before.
    ///
    /// # Errors
    /// See [`CreateJobError`]; nothing is written then.
    pub async fn create(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
        idempotency_key: Option<&str>,
    ) -> Result<Job, CreateJobError> {
        check(request, self.limits.maximum_deadline_seconds)?;
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

    /// A job that an earlier try of the same request created. That try may have died before it sent the message, so one is
    /// sent as long as nobody has taken the job up; a repeated one does nothing.
    async fn before(&self, job: JobGuid) -> Result<Job, CreateJobError> {
        let job = self.jobs.job(job).await?;
        if job.status == Status::Waiting {
            self.wake_splitter(&job).await;
        }
        Ok(job)
    }

    /// The job is there whether its message leaves or not, so a failure to send is not the client's.
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
        let job_type = self.job_types.get(&request.job_type).ok_or_else(|| CreateJobError::UnknownJobType {
            name: request.job_type.chars().take(64).collect(),
            known: self.job_types.names().into_iter().map(str::to_owned).collect(),
        })?;
        check_params(request, &**job_type)?;
        let now = self.clock.now();
        let (source, head) = match job_type.input() {
            InputKind::File => self.file_source(owner, request).await?,
            InputKind::Dataset => dataset_source(request)?,
        };
        let job_guid = self.entropy.job_guid(now);
        let mut spec = Spec {
            job_guid,
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
        };
        spec.output = job_type.prepare(&spec)?.output();
        let idempotency = idempotency.map(|(key, fingerprint)| Idempotency {
            key: key.to_owned(),
            fingerprint,
            expires_at: now + self.limits.idempotency,
        });
        Ok(NewJob { job: self.job_row(&spec, request), spec, ceilings: self.limits.ceilings, idempotency })
    }

    fn job_row(&self, spec: &Spec, request: &CreateJobRequest) -> Job {
        let now = spec.created_at;
        let deadline = request.deadline_seconds.unwrap_or(self.limits.default_deadline_seconds);
        let deadline_at = now + Duration::from_secs(deadline);
        let job = Job::waiting(spec, deadline_at, deadline_at.min(now + self.limits.stale));
        Job { metadata: request.metadata.clone(), ..job }
    }

    /// The upload, whole and as announced, and its object as it is now.
    async fn file_source(&self, owner: &Owner, request: &CreateJobRequest) -> Result<(Source, Head), CreateJobError> {
        let file_guid = request
            .file_guid
            .ok_or_else(|| InvalidField::new("fileGuid", "is missing; upload a file and say which one it is"))?;
        let (upload, file) = self.source_file(owner, file_guid).await?;
        self.read_head(&upload, file, request).await
    }

    async fn source_file(&self, owner: &Owner, file_guid: FileGuid) -> Result<(Upload, SourceFile), CreateJobError> {
        let upload = match self.uploads.upload(file_guid, self.clock.now()).await {
            Ok(upload) if upload.owner == *owner => upload,
            Ok(_) | Err(PortError::NotFound) => return Err(CreateJobError::UnknownUpload(file_guid)),
            Err(error) => return Err(error.into()),
        };
        // The bytes of a multipart upload are no object before it is completed; those of a presigned PUT need nothing more.
        let head = match self.objects.head(&upload.key).await {
            Err(PortError::NotFound) if matches!(upload.state, UploadState::Pending { .. }) => {
                return Err(CreateJobError::UploadIncomplete(file_guid));
            }
            Err(PortError::NotFound) => return Err(CreateJobError::UnknownUpload(file_guid)),
            head => head?,
        };
        if head.size != upload.size {
            let (announced, stored) = (upload.size, head.size);
            return Err(CreateJobError::UploadSize { file: file_guid, announced, stored });
        }
        // Of an upload that was seen whole, nothing else will do: its client may hold a request that stores another one.
        if matches!(&upload.state, UploadState::Ready { etag } if *etag != head.etag) {
            return Err(CreateJobError::UploadChanged(file_guid));
        }
        let file = SourceFile { file_guid, key: upload.key.clone(), etag: head.etag, size: head.size };
        Ok((upload, file))
    }

    /// How the upload is packed and how its text is read, as its first bytes tell.
    async fn read_head(
        &self,
        upload: &Upload,
        file: SourceFile,
        request: &CreateJobRequest,
    ) -> Result<(Source, Head), CreateJobError> {
        let length = self.limits.header_max_bytes.min(file.size);
        let prefix = match length {
            0 => bytes::Bytes::new(),
            length => self.objects.read_range(&file.key, &file.etag, 0..length).await?,
        };
        let whole = length == file.size;
        let hints = hints(&request.params, upload)?;
        let packing = detect(&prefix, &hints)?;
        let params = text_params(&request.params, packing.as_ref())?;
        let file_name = upload.file_name.as_deref().map(|name| text_file_name(name, packing.as_ref()));
        let content_type = text_content_type(&upload.content_type, packing.as_ref());
        let head = |text: &[u8], whole| read_head(text, whole, &params, content_type, file_name.as_deref());
        let Some(packing) = packing else {
            let head = head(&prefix, whole)?;
            return Ok((Source::File(file), head));
        };
        let (text, whole) = match &packing {
            Packing::Text { compression, charset } => {
                decode_prefix(*compression, *charset, &prefix, whole, prefix_max(length))?
            }
            Packing::Xlsx { .. } | Packing::Parquet => self.first_text(&file, &packing, prefix_max(length)).await?,
        };
        let head = head(&text, whole)?;
        Ok((Source::Packed { file, packing }, head))
    }

    /// The first bytes of the text of an upload that cannot be told from its first bytes alone.
    async fn first_text(
        &self,
        file: &SourceFile,
        packing: &Packing,
        max_bytes: usize,
    ) -> Result<(Vec<u8>, bool), CreateJobError> {
        let mut stream = TextStream::open(Arc::clone(&self.objects), file, packing, Limits::default());
        let mut text = Vec::new();
        while text.len() < max_bytes {
            match stream.next().await {
                Ok(Some(block)) => text.extend_from_slice(&block.bytes),
                Ok(None) => return Ok((text, true)),
                Err(error) => return Err(port_error(error).map_or_else(CreateJobError::from, CreateJobError::from)),
            }
        }
        text.truncate(max_bytes);
        Ok((text, false))
    }
}

/// So many bytes of text are looked at: as many as of a plain file, of a short file that is packed a fair number too.
fn prefix_max(length: u64) -> usize {
    usize::try_from(length.max(64 * 1024)).unwrap_or(usize::MAX)
}

/// What the client says of the file.
fn hints<'a>(params: &'a Map<String, Value>, upload: &'a Upload) -> Result<Hints<'a>, InvalidField> {
    let text = |name: &str| match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(InvalidField::new(format!("params.{name}"), "must be a text")),
    };
    Ok(Hints {
        format: text("format")?,
        compression: text("compression")?,
        encoding: text("encoding")?,
        sheet: text("sheet")?,
        content_type: Some(&upload.content_type),
        file_name: upload.file_name.as_deref(),
    })
}

/// What the client says of the text that comes out of the file.
fn text_params(params: &Map<String, Value>, packing: Option<&Packing>) -> Result<TextParams, InvalidField> {
    let mut params = params.clone();
    if let Some(packing) = packing {
        // Its text is UTF-8 by then.
        params.remove("encoding");
        if let Some(format) = text_format(packing) {
            params.remove("delimiter");
            let format = if format == Format::Csv { "csv" } else { "jsonl" };
            params.insert("format".to_owned(), Value::from(format));
        }
        if matches!(packing, Packing::Xlsx { .. }) {
            params.insert("delimiter".to_owned(), Value::from(","));
        }
    }
    serde_json::from_value(Value::Object(params)).map_err(|error| {
        InvalidField::new("params", format!("`format`, `delimiter`, `header` or `encoding` is not right: {error}"))
    })
}

/// A job over a dataset reads JSON lines, one for each record.
fn dataset_source(request: &CreateJobRequest) -> Result<(Source, Head), CreateJobError> {
    if request.file_guid.is_some() {
        let message = format!("must be left out: `{}` reads a dataset, which `params.dataset` names", request.job_type);
        return Err(InvalidField::new("fileGuid", message).into());
    }
    let dataset = request.params.get("dataset").and_then(Value::as_str).unwrap_or_default().to_owned();
    let dialect = Dialect { format: Format::Jsonl, delimiter: b',' };
    Ok((Source::Dataset { dataset }, Head { dialect, columns: Vec::new(), data_start: 0 }))
}

/// The params that say how a file is read.
const FILE_PARAMS: [&str; 6] = ["format", "delimiter", "header", "encoding", "compression", "sheet"];

/// Every param must be one that somebody knows.
fn check_params(request: &CreateJobRequest, job_type: &dyn JobType) -> Result<(), ParamsError> {
    if request.params.get(DRY_RUN).is_some_and(|dry_run| !dry_run.is_boolean()) {
        return Err(ParamsError::new(format!("params.{DRY_RUN}"), "must be true or false"));
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
        Some(name) => {
            let name: String = name.chars().take(64).collect();
            let message = format!("`{}` has no such param; there are {}", request.job_type, known.join(", "));
            Err(ParamsError::new(format!("params.{name}"), message))
        }
    }
}
