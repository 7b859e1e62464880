//! Uploads a file through the API in constant memory. The method depends on the size. An upload in parts can be
//! resumed, also by a later run of the command.

mod fetched;
mod file;
mod parts;
mod remembered;
mod transfer;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use rowmill_api::problem::ProblemCode;
use rowmill_api::request::AnnounceRequest;
use rowmill_api::upload::UploadStatus;
use rowmill_core::model::ids::FileGuid;

use crate::api::{ApiClient, ApiError, Upload};
use crate::progress::ByteProgress;
pub use fetched::{fetch, url_of};
pub use file::{CSV, JSON_LINES, PARQUET, SourceFile, XLSX};
use parts::Parts;
use remembered::Remembered;
pub use remembered::RememberedUploads;
pub use transfer::Transfer;

/// A text file up to this size is sent with the request that announces it: one call instead of two.
const DIRECT_MAX_BYTES: u64 = 1024 * 1024;

/// Above this size the API requires parts and accepts no checksum of the whole file, so none is computed.
const CHECKSUM_MAX_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    #[error("there is no file `{}`", .0.display())]
    Missing(PathBuf),
    /// A folder, a pipe or a device: it has no size to announce.
    #[error("`{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    #[error("cannot read `{}`: {source}", .path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file became shorter or longer during the upload.
    #[error("`{}` changed while it was being uploaded; nothing of it was used", .0.display())]
    Changed(PathBuf),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("the storage refused the file: {reason} (HTTP {status})")]
    Refused { status: u16, reason: String },
    /// The connection to the storage failed or broke.
    #[error("cannot reach the storage at {origin}: {}", crate::terminal::innermost(.source))]
    Unreachable {
        /// Scheme, host and port.
        origin: String,
        /// The transport's error, without the signed address.
        #[source]
        source: reqwest::Error,
    },
    /// No byte was sent and no answer received for too long.
    #[error("the upload made no progress for {} s and was aborted", .0.as_secs())]
    Stalled(std::time::Duration),
    /// Some parts are stored, and the rest could not be sent.
    #[error("{source}\n{stored} of {size} bytes are stored. {}", how_to_go_on(*file_guid, *is_remembered))]
    Interrupted {
        #[source]
        source: Box<UploadError>,
        file_guid: FileGuid,
        stored: u64,
        size: u64,
        /// True if the same command would resume it.
        is_remembered: bool,
    },
    /// The stack could not fetch the file.
    #[error("the file could not be fetched: {0}")]
    Fetch(String),
    /// The API's upload instructions are invalid for this file.
    #[error("the API's upload instructions are invalid: {0}")]
    Instructions(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadMethod {
    /// In the body of the request.
    Direct,
    /// By one presigned PUT.
    SinglePut,
    /// In parts, of which this call sent so many.
    Multipart(usize),
}

#[derive(Debug)]
pub struct Stored {
    /// The upload as the API last described it.
    pub upload: Upload,
    pub way: UploadMethod,
}

/// Stores `file`: in the request body if it is a small text, otherwise with presigned requests, in one piece or in
/// parts.
///
/// With `remembered`, an upload in parts that an earlier run began on the same file and API is resumed.
///
/// # Errors
///
/// An [`UploadError`] after the retries of `api`. The call may be repeated.
pub async fn store(
    api: &ApiClient,
    file: &SourceFile,
    remembered: Option<&RememberedUploads>,
    progress: &Arc<ByteProgress>,
) -> Result<Stored, UploadError> {
    if file.size <= DIRECT_MAX_BYTES && file.is_text() {
        let content = file.read_whole().await?;
        // API Gateway passes the body of a text type on as text, which would corrupt invalid UTF-8.
        if std::str::from_utf8(&content).is_ok() {
            return store_directly(api, file, content.into(), progress).await;
        }
    }
    let mut remembered = remembered.and_then(|uploads| uploads.of_file(&api.server(), file));
    if let Some(remembered) = &mut remembered
        && let Some(stored) = resume(api, file, remembered, progress).await?
    {
        remembered.forget();
        return Ok(stored);
    }
    let sha256 = match file.size {
        ..=CHECKSUM_MAX_BYTES => Some(file.sha256().await?),
        _ => None,
    };
    let mut upload = api.announce_upload(&announcement(file, sha256)).await?;
    // The requests hold signatures. Without them the upload can be printed.
    let (request, parts) = upload.take(&["upload", "parts"], |view| (view.upload.take(), view.parts.take()));
    if let Some(request) = request {
        let transfer = Transfer::to(&request.url, api.retry().clone())?;
        transfer.put(file, &request, 0..file.size, progress).await?;
        progress.add_stored(file.size);
        return Ok(Stored { upload, way: UploadMethod::SinglePut });
    }
    if let Some(remembered) = &mut remembered {
        remembered.note(upload.file_guid);
    }
    let parts = Parts::announced(file, &upload, parts.unwrap_or_default())?;
    let stored = parts.send(api, remembered.is_some(), progress).await;
    end(api, remembered.as_mut(), &stored).await;
    stored
}

/// Resumes the upload that an earlier run began, if there is one. `None` if the file must be announced.
async fn resume(
    api: &ApiClient,
    file: &SourceFile,
    remembered: &mut Remembered,
    progress: &Arc<ByteProgress>,
) -> Result<Option<Stored>, UploadError> {
    let Some(file_guid) = remembered.file_guid() else { return Ok(None) };
    let upload = match api.upload(file_guid).await {
        // It has expired, was aborted, or belongs to another login.
        Err(error) if error.is(ProblemCode::NotFound) => return Ok(None),
        upload => upload?,
    };
    if upload.size != file.size {
        return Ok(None);
    }
    if upload.status == UploadStatus::Ready {
        progress.set_stored(file.size);
        return Ok(Some(Stored { way: UploadMethod::Multipart(0), upload }));
    }
    let Some(part_size) = upload.part_size else { return Ok(None) };
    let stored = Parts::resumed(file, file_guid, part_size).send(api, true, progress).await;
    end(api, Some(remembered), &stored).await;
    stored.map(Some)
}

/// Forgets an upload that is complete, or can never be: its file has changed, so what is stored is aborted.
async fn end(api: &ApiClient, remembered: Option<&mut Remembered>, stored: &Result<Stored, UploadError>) {
    let Some(remembered) = remembered else { return };
    match stored {
        Ok(_) => remembered.forget(),
        Err(UploadError::Changed(_)) => {
            if let Some(file_guid) = remembered.file_guid() {
                // It would expire by itself.
                let _ = api.delete_upload(file_guid).await;
            }
            remembered.forget();
        }
        Err(_) => {}
    }
}

fn how_to_go_on(file_guid: FileGuid, is_remembered: bool) -> String {
    let resume = if is_remembered { "The same command sends the rest. " } else { "" };
    format!("{resume}To give it up: rowmill delete upload {file_guid}")
}

async fn store_directly(
    api: &ApiClient,
    file: &SourceFile,
    content: Bytes,
    progress: &Arc<ByteProgress>,
) -> Result<Stored, UploadError> {
    let upload = api.upload_directly(&announcement(file, None), content).await?;
    progress.set_stored(file.size);
    Ok(Stored { upload, way: UploadMethod::Direct })
}

fn announcement(file: &SourceFile, sha256: Option<String>) -> AnnounceRequest {
    AnnounceRequest {
        file_name: file.name.clone(),
        content_type: file.content_type.to_owned(),
        size: file.size,
        sha256,
    }
}

#[cfg(test)]
mod tests;
