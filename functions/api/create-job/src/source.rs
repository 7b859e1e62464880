//! Detects the source of a job: which upload or dataset it reads, how the upload is packed, and how its text is read.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use jiff::Timestamp;
use rowmill_api::request::{JobInput, JobSource};
use rowmill_core::items::manifest::read_manifest;
use rowmill_core::model::files::{FileList, ListedFile};
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::results::{ResultFile, ResultKind};
use rowmill_core::model::spec::{AwaitedFile, Source, SourceFile};
use rowmill_core::model::upload::{Upload, UploadState};
use rowmill_core::model::warnings::Warning;
use rowmill_core::ports::{JobStore, Objects, OutstandingUploads, PortError, UploadStore, found};
use rowmill_core::text::{Dialect, Format, Head, TextParams};
use rowmill_formats::{
    FirstText, FormatError, Limits, OpenError, Opened, checked_params, first_text, open, zip_members,
};
use rowmill_settings::Inputs;
use serde_json::Value;

use crate::awaits::refuse_bad_end;
use crate::error::CreateJobError;
use crate::inputs;
use crate::request::{CreateJobRequest, InvalidField};

/// Number of uploads read at once.
const UPLOADS_READ: usize = 16;

pub struct DetectedSource {
    pub source: Source,
    /// The format of its text.
    pub head: Head,
    /// Warnings for the owner about its first bytes, apart from those about the names of the columns.
    pub warnings: Vec<Warning>,
    /// The text that the head was read from.
    pub first: FirstText,
    /// The params that say how the text is read.
    pub params: TextParams,
}

/// Detects the source of jobs over uploads.
pub struct SourceDetector<'a> {
    pub uploads: &'a Arc<dyn UploadStore>,
    pub objects: &'a Arc<dyn Objects>,
    pub outstanding: &'a Arc<dyn OutstandingUploads>,
    /// The jobs, whose results may be read.
    pub jobs: &'a Arc<dyn JobStore>,
    /// The buckets of others that it may read.
    pub inputs: &'a Inputs,
    /// The current time. Expired uploads count as unknown.
    pub now: Timestamp,
    /// Maximum number of bytes of an upload that are read.
    pub header_max_bytes: u64,
}

impl SourceDetector<'_> {
    /// The source of a job over an upload, the head of its text, and what its owner should know about its first bytes.
    ///
    /// # Errors
    /// The request names no upload of this owner, or the upload is incomplete or unreadable.
    pub async fn file(&self, owner: &Owner, request: &CreateJobRequest) -> Result<DetectedSource, CreateJobError> {
        checked_params(&request.params)?;
        match input_of(request)? {
            None => {}
            Some(JobInput::Result { job, kind }) => {
                let (found, file) = self.result(owner, job, kind).await?;
                return self.open((&found.content_type, Some(&found.name)), file, request).await;
            }
            Some(JobInput::Files(files)) => return self.files(owner, files).await,
            Some(JobInput::Objects(objects)) => {
                return Ok(to_list(inputs::to_list(self.inputs, owner, objects)?));
            }
            Some(JobInput::Manifest(file_guid)) => {
                if !self.inputs.are_any() {
                    let message =
                        "is not allowed: this stack reads no buckets of others, see its parameter `InputBuckets`.";
                    return Err(InvalidField::new("source.manifest", message).into());
                }
                self.upload(owner, file_guid).await?;
                return Ok(to_list(AwaitedFile::Manifest(file_guid)));
            }
        }
        let missing = "is missing. Upload a file and send its `fileGuid`, or send the rows themselves in `items`.";
        let file_guid = request.file_guid.ok_or_else(|| InvalidField::new("fileGuid", missing))?;
        let (upload, file) = self.upload(owner, file_guid).await?;
        match self.open((&upload.content_type, upload.file_name.as_deref()), file, request).await {
            Err(CreateJobError::Packing(FormatError::Zip)) => Ok(to_list(AwaitedFile::Archive(file_guid))),
            opened => opened,
        }
    }

    /// The files in this upload of the owner, which is a zip archive.
    pub async fn members(&self, owner: &Owner, file_guid: FileGuid) -> Result<ListText, CreateJobError> {
        let (_, file) = self.upload(owner, file_guid).await?;
        let members = zip_members(Arc::clone(self.objects), &file, Limits::default()).await.map_err(OpenError::of)?;
        let mut list = ListText::default();
        for (name, member) in members {
            let part = SourceFile { size: member.bytes, ..file.clone() };
            list.add(&ListedFile { member: Some(member), ..ListedFile::of(name, part) })?;
        }
        Ok(list)
    }

    /// These uploads of the owner, as one source. Its list is not stored yet.
    async fn files(&self, owner: &Owner, files: &[FileGuid]) -> Result<DetectedSource, CreateJobError> {
        let mut uploads = Vec::with_capacity(files.len());
        for some in files.chunks(UPLOADS_READ) {
            uploads.extend(try_join_all(some.iter().map(|file_guid| self.upload(owner, *file_guid))).await?);
        }
        let mut list = ListText::default();
        for (upload, file) in uploads {
            let name = upload.file_name.unwrap_or_else(|| upload.file_guid.to_string());
            list.add(&ListedFile { content_type: Some(upload.content_type), ..ListedFile::of(name, file) })?;
        }
        Ok(many(list))
    }

    /// A file of the results of the owner's job, which has ended.
    async fn result(
        &self,
        owner: &Owner,
        job_guid: JobGuid,
        kind: ResultKind,
    ) -> Result<(ResultFile, SourceFile), CreateJobError> {
        let job = found(self.jobs.owned(owner, job_guid, self.now).await)?;
        let job = job.ok_or(CreateJobError::UnknownJob { field: "source.jobGuid", job: job_guid })?;
        let results = job.end().ok_or(CreateJobError::JobActive(job_guid))?.results;
        if kind.needs_good_end() {
            refuse_bad_end("source.jobGuid", &job)?;
        }
        let kind = kind.as_str();
        let wrong = |message: String| InvalidField::new("source.file", message);
        let none = || wrong(format!("names no result: job {job_guid} has no file of kind `{kind}`."));
        let results = results.ok_or_else(none)?;
        let (manifest, _) = read_manifest(&**self.objects, job_guid, &results).await?.ok_or_else(none)?;
        let stored = manifest.files.into_iter().find(|stored| stored.file.kind.as_str() == kind).ok_or_else(none)?;
        if let Some(left_out) = manifest.left_out.into_iter().find(|left_out| left_out.file == stored.file.name) {
            return Err(wrong(format!("names a file that is not whole: {}", left_out.message)).into());
        }
        let key = results.file_key(job_guid, &stored);
        let head = found(self.objects.head(&key).await)?.ok_or_else(none)?;
        let file = SourceFile { file_guid: None, key, etag: head.etag, size: head.size };
        Ok((stored.file, file))
    }

    /// The first `max_bytes` bytes of a source's text, to read more than its head.
    ///
    /// # Errors
    /// The upload is unreadable, or was replaced.
    pub async fn text(&self, source: &Source, max_bytes: usize) -> Result<FirstText, CreateJobError> {
        match source {
            Source::File(file) => {
                let length = file.size.min(max_bytes as u64);
                let bytes = self.objects.read_range(&file.key, &file.etag, 0..length).await?;
                Ok(FirstText { bytes, whole: length == file.size })
            }
            Source::Packed { file, packing } => Ok(first_text(self.objects, file, packing, max_bytes).await?),
            Source::Dataset { .. } | Source::Files(_) | Source::Awaited(_) => Ok(FirstText::default()),
        }
    }

    /// The owner's upload and its object. The object has all announced bytes.
    pub(crate) async fn upload(
        &self,
        owner: &Owner,
        file_guid: FileGuid,
    ) -> Result<(Upload, SourceFile), CreateJobError> {
        let upload = match self.uploads.owned(owner, file_guid, self.now).await {
            Err(PortError::NotFound) => return Err(CreateJobError::UnknownUpload(file_guid)),
            upload => upload?,
        };
        if let UploadState::Failed(failure) = &upload.state {
            return Err(CreateJobError::UploadFailed { file: file_guid, detail: failure.detail.clone() });
        }
        // A multipart upload has no object before it is completed. An upload by presigned PUT needs no further request.
        let head = match self.objects.head(&upload.key).await {
            Err(PortError::NotFound) if matches!(upload.state, UploadState::Pending { .. }) => {
                return Err(match upload.origin {
                    Some(_) => CreateJobError::UploadFetching(file_guid),
                    None => CreateJobError::UploadIncomplete(file_guid),
                });
            }
            Err(PortError::NotFound) => return Err(CreateJobError::UnknownUpload(file_guid)),
            head => head?,
        };
        // `fetch-file` has stored it since its row was read.
        if upload.is_fetching() {
            return Err(CreateJobError::UploadFetching(file_guid));
        }
        if head.size != upload.size {
            let (announced, stored) = (upload.size, head.size);
            return Err(CreateJobError::UploadSize { file: file_guid, announced, stored });
        }
        // A complete upload must not change, but its client may still hold a presigned request that replaces it.
        if matches!(&upload.state, UploadState::Ready { etag } if *etag != head.etag) {
            return Err(CreateJobError::UploadChanged(file_guid));
        }
        // The client need not say that it has sent the file, so this may be the first to see that it has.
        if matches!(upload.state, UploadState::Pending { .. })
            && let Err(error) = self.outstanding.remove(owner, file_guid).await
        {
            tracing::warn!(upload.id = %file_guid, error = &error as &dyn std::error::Error, "upload still counts as outstanding");
        }
        let file = SourceFile { file_guid: Some(file_guid), key: upload.key.clone(), etag: head.etag, size: head.size };
        Ok((upload, file))
    }

    async fn open(
        &self,
        named: (&str, Option<&str>),
        file: SourceFile,
        request: &CreateJobRequest,
    ) -> Result<DetectedSource, CreateJobError> {
        let opened = open(self.objects, &file, named, &request.params, self.header_max_bytes).await?;
        let Opened { packing, head, warnings, first, params } = opened;
        let source = match packing {
            None => Source::File(file),
            Some(packing) => Source::Packed { file, packing },
        };
        Ok(DetectedSource { source, head, warnings, first, params })
    }
}

/// The source of a job over a file that is not uploaded yet: read like an empty file, which fits all that the params
/// say of its columns.
///
/// # Errors
/// The params are wrong for every file.
pub fn file_to_come(request: &CreateJobRequest) -> Result<DetectedSource, CreateJobError> {
    let params = checked_params(&request.params)?;
    let file = SourceFile { file_guid: None, key: String::new(), etag: String::new(), size: 0 };
    let head = Head::without_columns(Dialect { format: params.format.unwrap_or(Format::Csv), delimiter: b',' }, 0);
    let (source, first) = (Source::File(file), FirstText::default());
    Ok(DetectedSource { source, head, warnings: Vec::new(), first, params })
}

/// The source of a job that is created before its file is there, see [`file_to_come`].
pub fn awaited(request: &CreateJobRequest, file: AwaitedFile) -> Result<DetectedSource, CreateJobError> {
    Ok(DetectedSource { source: Source::Awaited(file), ..file_to_come(request)? })
}

/// The source of a job over a dataset: JSON lines, one per record.
///
/// # Errors
/// The request names an upload, or has items.
pub fn dataset(request: &CreateJobRequest) -> Result<DetectedSource, InvalidField> {
    refuse_input(request, "reads the dataset that `params.dataset` names")?;
    let dataset = request.params.get("dataset").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(json_lines(Source::Dataset { dataset }, FirstText::default()))
}

/// The source of a job whose text comes with the request: JSON lines. It is stored under this key before the job is
/// created, and has no entity tag before.
pub fn text(key: String, text: Bytes) -> DetectedSource {
    let file = SourceFile { file_guid: None, key, etag: String::new(), size: text.len() as u64 };
    json_lines(Source::File(file), FirstText { bytes: text, whole: true })
}

/// The longest list of the files of a job, in bytes. It is held in memory while it is made.
const LIST_MAX_BYTES: usize = 128 * 1024 * 1024;

/// The list of the files of a job, as it is stored.
#[derive(Debug, Default)]
pub struct ListText {
    pub text: Vec<u8>,
    pub files: u64,
    /// The bytes of all files.
    bytes: u64,
}

impl ListText {
    /// Adds a file.
    ///
    /// # Errors
    /// The list is too long.
    pub fn add(&mut self, file: &ListedFile) -> Result<(), CreateJobError> {
        (self.files, self.bytes) = (self.files + 1, self.bytes.saturating_add(file.size));
        serde_json::to_writer(&mut self.text, file).map_err(|error| PortError::invalid("listing files", error))?;
        self.text.push(b'\n');
        if self.text.len() > LIST_MAX_BYTES {
            let message = format!(
                "names so many files that their list is longer than {LIST_MAX_BYTES} bytes. Create a job for each part of them."
            );
            return Err(InvalidField::new("source", message).into());
        }
        Ok(())
    }
}

/// The source of a job over files that are not listed yet.
fn to_list(files: AwaitedFile) -> DetectedSource {
    DetectedSource { source: Source::Awaited(files), ..many(ListText::default()) }
}

/// The source of a job over many files. Its list is stored before the job is created, and has no key before.
pub fn many(list: ListText) -> DetectedSource {
    let ListText { text, files, bytes } = list;
    let list = SourceFile { file_guid: None, key: String::new(), etag: String::new(), size: text.len() as u64 };
    json_lines(Source::Files(FileList { list, files, bytes }), FirstText { bytes: text.into(), whole: true })
}

/// What the `source` of a request names, if it has one.
pub fn input_of(request: &CreateJobRequest) -> Result<Option<JobInput<'_>>, InvalidField> {
    let input = request.source.as_ref().map(JobSource::input).transpose();
    input.map_err(|(field, message)| InvalidField::new(field, message))
}

/// Rejects a file and items, since the job type takes neither.
pub fn refuse_input(request: &CreateJobRequest, reads: &str) -> Result<(), InvalidField> {
    let given = [
        ("fileGuid", request.file_guid.is_some()),
        ("source", request.source.is_some()),
        ("items", request.items.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((field, _)) => Err(InvalidField::new(field, format!("must be left out: `{}` {reads}.", request.job_type))),
    }
}

fn json_lines(source: Source, first: FirstText) -> DetectedSource {
    let head = Head::without_columns(Dialect { format: Format::Jsonl, delimiter: b',' }, 0);
    DetectedSource { source, head, warnings: Vec::new(), first, params: TextParams::default() }
}
