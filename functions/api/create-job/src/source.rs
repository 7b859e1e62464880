//! Detects the source of a job: which upload or dataset it reads, how the upload is packed, and how its text is read.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use rowmill_api::request::JobSource;
use rowmill_core::items::manifest::read_manifest;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::packing::Packing;
use rowmill_core::model::results::{ResultFile, ResultKind};
use rowmill_core::model::spec::{AwaitedFile, Source, SourceFile};
use rowmill_core::model::upload::{Upload, UploadState};
use rowmill_core::model::warnings::{self, Warning};
use rowmill_core::ports::{JobStore, Objects, OutstandingUploads, PortError, UploadStore, found};
use rowmill_core::text::{Dialect, Format, Head, TextParams, Utf8Watch, read_head, title_rows};
use rowmill_formats::{
    Hints, Limits, TextStream, check_hints, decode_prefix, detect, port_error, text_content_type, text_file_name,
    text_format,
};
use serde_json::{Map, Value};

use crate::awaits::refuse_bad_end;
use crate::error::CreateJobError;
use crate::request::{CreateJobRequest, InvalidField};

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

#[derive(Clone, Debug, Default)]
pub struct FirstText {
    pub bytes: Bytes,
    pub whole: bool,
}

/// Detects the source of jobs over uploads.
pub struct SourceDetector<'a> {
    pub uploads: &'a Arc<dyn UploadStore>,
    pub objects: &'a Arc<dyn Objects>,
    pub outstanding: &'a Arc<dyn OutstandingUploads>,
    /// The jobs, whose results may be read.
    pub jobs: &'a Arc<dyn JobStore>,
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
        if let Some(JobSource { job_guid, file }) = request.source {
            let (found, file) = self.result(owner, job_guid, file).await?;
            return self.read_head((&found.content_type, Some(&found.name)), file, request).await;
        }
        let missing = "is missing. Upload a file and send its `fileGuid`, or send the rows themselves in `items`.";
        let file_guid = request.file_guid.ok_or_else(|| InvalidField::new("fileGuid", missing))?;
        let (upload, file) = self.upload(owner, file_guid).await?;
        self.read_head((&upload.content_type, upload.file_name.as_deref()), file, request).await
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
            Source::Packed { file, packing } => self.first_text(file, packing, max_bytes).await,
            Source::Dataset { .. } | Source::Awaited(_) => Ok(FirstText::default()),
        }
    }

    /// The owner's upload and its object. The object has all announced bytes.
    async fn upload(&self, owner: &Owner, file_guid: FileGuid) -> Result<(Upload, SourceFile), CreateJobError> {
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

    /// Detects from the first bytes how the upload is packed and how its text is read.
    async fn read_head(
        &self,
        (content_type, file_name): (&str, Option<&str>),
        file: SourceFile,
        request: &CreateJobRequest,
    ) -> Result<DetectedSource, CreateJobError> {
        let length = self.header_max_bytes.min(file.size);
        let prefix = match length {
            0 => Bytes::new(),
            length => self.objects.read_range(&file.key, &file.etag, 0..length).await?,
        };
        let whole = length == file.size;
        let hints = Hints { content_type: Some(content_type), file_name, ..hints(&request.params)? };
        let packing = detect(&prefix, &hints)?;
        let params = text_params(&request.params, packing.as_ref())?;
        let file_name = file_name.map(|name| text_file_name(name, packing.as_ref()));
        let content_type = text_content_type(content_type, packing.as_ref());
        let first = match &packing {
            None => FirstText { bytes: prefix, whole },
            Some(packing @ Packing::Text { compression, charset }) => {
                let (text, whole) = decode_prefix(*compression, *charset, &prefix, whole, prefix_max(length))?;
                // A block of zstd may be longer than the prefix. Then nothing of it can be decoded.
                match compression.is_some() && !whole && text.len() < prefix_max(length) {
                    true => self.first_text(&file, packing, prefix_max(length)).await?,
                    false => FirstText { bytes: text.into(), whole },
                }
            }
            Some(packing) => self.first_text(&file, packing, prefix_max(length)).await?,
        };
        let head = read_head(&first.bytes, first.whole, &params, content_type, file_name.as_deref())?;
        let warnings = match packing {
            None | Some(Packing::Text { charset: None, .. }) => utf8_warning(&first.bytes, first.whole),
            Some(_) => Vec::new(),
        };
        let source = match packing {
            None => Source::File(file),
            Some(packing) => Source::Packed { file, packing },
        };
        Ok(DetectedSource { source, head, warnings, first, params })
    }

    /// The beginning of the text, for formats whose first bytes do not hold it, or if more of it is wanted.
    async fn first_text(
        &self,
        file: &SourceFile,
        packing: &Packing,
        max_bytes: usize,
    ) -> Result<FirstText, CreateJobError> {
        let mut stream = TextStream::open(Arc::clone(self.objects), file, packing, Limits::of_beginning(), 1);
        let mut text = Vec::new();
        while text.len() < max_bytes {
            match stream.next().await {
                Ok(Some(block)) => text.extend_from_slice(&block.bytes),
                Ok(None) => return Ok(FirstText { bytes: text.into(), whole: true }),
                Err(error) => return Err(port_error(error).map_or_else(CreateJobError::from, CreateJobError::from)),
            }
        }
        text.truncate(max_bytes);
        Ok(FirstText { bytes: text.into(), whole: false })
    }
}

/// The warning about text that is not UTF-8, if it begins like this.
fn utf8_warning(text: &[u8], whole: bool) -> Vec<Warning> {
    let mut watch = Utf8Watch::default();
    watch.push(text);
    if whole {
        watch.finish();
    }
    watch.found().map(|(byte, likely)| warnings::not_utf8(byte, likely)).into_iter().collect()
}

/// Number of bytes of unpacked text to read. A short packed file may expand, hence the minimum of 64 KiB.
fn prefix_max(length: u64) -> usize {
    usize::try_from(length.max(64 * 1024)).unwrap_or(usize::MAX)
}

/// The params that hint at the packing of a file.
fn hints(params: &Map<String, Value>) -> Result<Hints<'_>, InvalidField> {
    let text = |name: &str| match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(InvalidField::new(format!("params.{name}"), "must be a string.")),
    };
    let number = |name: &str| match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(number) => number
            .as_u64()
            .map(|number| Some(row_number(number)))
            .ok_or_else(|| InvalidField::new(format!("params.{name}"), "must be a whole number, 0 or more.")),
    };
    Ok(Hints {
        format: text("format")?,
        compression: text("compression")?,
        encoding: text("encoding")?,
        sheet: text("sheet")?,
        title_rows: title_rows(number("headerRow")?, number("skipRows")?),
        content_type: None,
        file_name: None,
    })
}

/// The params that say how a file is read, checked as far as nothing of the file is known.
fn checked_params(params: &Map<String, Value>) -> Result<TextParams, CreateJobError> {
    let hints = hints(params)?;
    check_hints(&hints)?;
    let mut of_text = params.clone();
    if matches!(hints.format, Some("xlsx" | "parquet")) {
        // Their text has a format of its own.
        of_text.retain(|name, _| name != "format" && name != "delimiter");
    }
    let params = text_params(&of_text, None)?;
    params.check()?;
    Ok(params)
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

/// A number of rows. One that is larger than any stays too large: the reader refuses it with its limit.
fn row_number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The params for the text that the file unpacks to.
fn text_params(params: &Map<String, Value>, packing: Option<&Packing>) -> Result<TextParams, InvalidField> {
    let mut params = params.clone();
    // `detect` has judged it, and the unpacked text is UTF-8.
    params.remove("encoding");
    for name in ["headerRow", "skipRows"] {
        if let Some(number) = params.get(name).and_then(Value::as_u64) {
            params.insert(name.to_owned(), row_number(number).into());
        }
    }
    if let Some(packing) = packing {
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
        InvalidField::new("params", format!("has a wrong `format`, `delimiter` or `header`: {error}."))
    })
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
