//! Detects the source of a job: which upload or dataset it reads, how the upload is packed, and how its text is read.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use jiff::Timestamp;
use rowmill_api::request::{JobInput, JobSource};
use rowmill_core::items::manifest::read_manifest;
use rowmill_core::model::files::ListedFile;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::results::{ResultFile, ResultKind};
use rowmill_core::model::spec::{AwaitedFile, Source, SourceFile};
use rowmill_core::model::upload::{Upload, UploadState};
use rowmill_core::model::warnings::Warning;
use rowmill_core::ports::processor::InputKind;
use rowmill_core::ports::{JobStore, Objects, OutstandingUploads, PortError, UploadStore, found};
use rowmill_core::text::{Dialect, Format, Head, TextParams};
use rowmill_formats::{
    FirstText, FormatError, Limits, OpenError, Opened, checked_params, first_text, open, open_member, zip_members,
};
use rowmill_settings::AllowedBuckets;
use serde_json::Value;

use crate::awaits::refuse_bad_end;
use crate::error::CreateJobError;
use crate::inputs;
use crate::list_text::{ListText, listed, to_store};
use crate::request::{CreateJobRequest, InvalidField};

/// Number of uploads read at once.
const UPLOADS_READ: usize = 16;

pub struct DetectedSource {
    pub source: Source,
    /// The list of the files that its one item lists, if it does.
    pub inputs: Option<ListText>,
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
    /// The external buckets that it may read.
    pub inputs: &'a AllowedBuckets,
    /// The current time. Expired uploads count as unknown.
    pub now: Timestamp,
    /// Maximum number of bytes of an upload that are read.
    pub header_max_bytes: u64,
}

impl SourceDetector<'_> {
    /// The source of a job over files, the head of its text, and what its owner should know about its first bytes.
    ///
    /// # Errors
    /// The request names no file of this owner, or one that is incomplete or unreadable.
    pub async fn file(&self, owner: &Owner, request: &CreateJobRequest) -> Result<DetectedSource, CreateJobError> {
        checked_params(&request.params)?;
        match self.named(owner, request).await? {
            Named::One { name, content_type, file } => {
                let archive = file.file_guid.map(AwaitedFile::Archive);
                let opened = self.open((&content_type, name.as_deref()), file, request).await;
                match (opened, archive) {
                    (Err(CreateJobError::Packing(FormatError::Zip)), Some(archive)) => Ok(to_list(archive)),
                    (opened, _) => opened,
                }
            }
            Named::Many(uploads) => Ok(many(ListText::with(InputKind::File, &uploads)?)),
            Named::ToList(files) => Ok(to_list(files)),
        }
    }

    /// The source of a job whose one item lists files, which are not opened.
    ///
    /// # Errors
    /// As of [`file`](Self::file); or there are too many of them.
    pub async fn unread(&self, owner: &Owner, request: &CreateJobRequest) -> Result<DetectedSource, CreateJobError> {
        match self.named(owner, request).await? {
            Named::One { name, content_type, file } => {
                Ok(listing(ListText::with(InputKind::Files, &[listed(name, content_type, file)])?))
            }
            Named::Many(uploads) => Ok(listing(ListText::with(InputKind::Files, &uploads)?)),
            Named::ToList(files) => Ok(to_list(files)),
        }
    }

    /// What a request names.
    async fn named(&self, owner: &Owner, request: &CreateJobRequest) -> Result<Named, CreateJobError> {
        match input_of(request)? {
            None => {
                let missing =
                    "is missing. Upload a file and send its `fileGuid`, or send the rows themselves in `items`.";
                let file_guid = request.file_guid.ok_or_else(|| InvalidField::new("fileGuid", missing))?;
                let (upload, file) = self.upload(owner, file_guid).await?;
                Ok(Named::One { name: upload.file_name, content_type: upload.content_type, file })
            }
            Some(JobInput::Result { job, kind }) => {
                let (found, file) = self.result(owner, job, kind).await?;
                Ok(Named::One { name: Some(found.name), content_type: found.content_type, file })
            }
            Some(JobInput::Files(files)) => Ok(Named::Many(self.files(owner, files).await?)),
            Some(JobInput::Objects(objects)) => Ok(Named::ToList(inputs::to_list(self.inputs, owner, objects)?)),
            Some(JobInput::Manifest(file_guid)) => {
                self.inputs.check_any().map_err(|why| InvalidField::new("source.manifest", why))?;
                self.upload(owner, file_guid).await?;
                Ok(Named::ToList(AwaitedFile::Manifest(file_guid)))
            }
        }
    }

    /// The files in this upload of the owner, which is a zip archive.
    pub async fn members(&self, owner: &Owner, file_guid: FileGuid) -> Result<ListText, CreateJobError> {
        let (_, file) = self.upload(owner, file_guid).await?;
        let members = zip_members(Arc::clone(self.objects), &file, Limits::default()).await.map_err(OpenError::of)?;
        let mut list = ListText::of(InputKind::File);
        for (name, member) in members {
            let part = SourceFile { size: member.bytes, ..file.clone() };
            list.add(&ListedFile { member: Some(member), ..ListedFile::of(name, part) })?;
        }
        Ok(list)
    }

    /// The first file in this upload of the owner, which is a zip archive, and its name.
    pub async fn first_member(
        &self,
        owner: &Owner,
        file_guid: FileGuid,
        request: &CreateJobRequest,
    ) -> Result<(String, DetectedSource), CreateJobError> {
        let (_, file) = self.upload(owner, file_guid).await?;
        let members = zip_members(Arc::clone(self.objects), &file, Limits::default()).await.map_err(OpenError::of)?;
        let (name, member) = members.into_iter().next().ok_or(FormatError::Zip)?;
        let opened = open_member(self.objects, &file, member, &name, &request.params).await?;
        Ok((name, detected(file, opened)))
    }

    /// These uploads of the owner.
    async fn files(&self, owner: &Owner, files: &[FileGuid]) -> Result<Vec<ListedFile>, CreateJobError> {
        let mut uploads = Vec::with_capacity(files.len());
        for some in files.chunks(UPLOADS_READ) {
            uploads.extend(try_join_all(some.iter().map(|file_guid| self.upload(owner, *file_guid))).await?);
        }
        let listed = |(upload, file): (Upload, SourceFile)| listed(upload.file_name, upload.content_type, file);
        Ok(uploads.into_iter().map(listed).collect())
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
        let results = job.end().ok_or(CreateJobError::JobActive(job_guid))?.results.as_ref();
        if kind.needs_good_end() {
            refuse_bad_end("source.jobGuid", &job)?;
        }
        let kind = kind.as_str();
        let wrong = |message: String| InvalidField::new("source.file", message);
        let none = || wrong(format!("names no result: job {job_guid} has no file of kind `{kind}`."));
        let results = results.ok_or_else(none)?;
        let (manifest, _) = read_manifest(&**self.objects, job_guid, results).await?.ok_or_else(none)?;
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
        Ok(detected(file, opened))
    }
}

/// The source of a job over this file, which is opened.
pub fn detected(file: SourceFile, opened: Opened) -> DetectedSource {
    let Opened { packing, head, warnings, first, params } = opened;
    let source = match packing {
        None => Source::File(file),
        Some(packing) => Source::Packed { file, packing },
    };
    DetectedSource { source, inputs: None, head, warnings, first, params }
}

/// What a request names as input.
enum Named {
    /// An upload or a result.
    One { name: Option<String>, content_type: String, file: SourceFile },
    /// Uploads.
    Many(Vec<ListedFile>),
    /// Files that are to be listed.
    ToList(AwaitedFile),
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
    Ok(DetectedSource { source, inputs: None, head, warnings: Vec::new(), first, params })
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
    Ok(json_lines(Source::Dataset { dataset, keys_of: None }, FirstText::default()))
}

/// The source of a job whose text comes with the request: JSON lines. It is stored before the job is created, and has
/// no key before.
pub fn text(text: Bytes) -> DetectedSource {
    json_lines(Source::File(to_store(&text)), FirstText { bytes: text, whole: true })
}

/// The text of a job with one item: an empty object.
const ONE_ITEM: &[u8] = b"{}\n";

/// The source of a job over nothing.
pub fn one_item() -> DetectedSource {
    text(Bytes::from_static(ONE_ITEM))
}

/// The source of a job whose one item lists these files. The list is not stored yet.
pub fn listing(list: ListText) -> DetectedSource {
    DetectedSource { inputs: Some(list), ..one_item() }
}

/// The source of a job over files that are not listed yet.
fn to_list(files: AwaitedFile) -> DetectedSource {
    DetectedSource { source: Source::Awaited(files), ..many(ListText::of(InputKind::File)) }
}

/// The source of a job over many files. Its list is stored before the job is created, and has no key before.
pub fn many(list: ListText) -> DetectedSource {
    let (files, text) = list.unstored();
    json_lines(Source::Files(files), FirstText { bytes: text, whole: true })
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

/// Rejects items and the wish for one job per file, since the job type takes files as they are.
pub fn refuse_items(request: &CreateJobRequest) -> Result<(), InvalidField> {
    let given = [("items", request.items.is_some()), ("dedupe", request.dedupe.is_some())];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((field, _)) => {
            let message = format!("must be left out: `{}` takes files as they are.", request.job_type);
            Err(InvalidField::new(field, message))
        }
    }
}

pub fn json_lines(source: Source, first: FirstText) -> DetectedSource {
    let head = Head::without_columns(Dialect { format: Format::Jsonl, delimiter: b',' }, 0);
    DetectedSource { source, inputs: None, head, warnings: Vec::new(), first, params: TextParams::default() }
}
