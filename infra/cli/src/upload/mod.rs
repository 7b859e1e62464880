//! Uploads a file through the API in constant memory. The method depends on the size.

mod file;
mod transfer;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};

use rowmill_api::request::AnnounceRequest;
use rowmill_api::upload::PartView;

use crate::api::{ApiClient, ApiError, Upload};
use crate::progress::ByteProgress;

pub use file::{CSV, JSON_LINES, PARQUET, SourceFile, XLSX};
pub use transfer::Transfer;

/// A text file up to this size is sent with the request that announces it: one call instead of two.
const DIRECT_MAX_BYTES: u64 = 1024 * 1024;

/// Above this size the API requires parts and accepts no checksum of the whole file, so none is computed.
const CHECKSUM_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Parallel parts: enough to use the bandwidth, few enough to keep the machine usable.
const PARALLEL_PARTS: usize = 4;

/// Error of an upload.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The file does not exist.
    #[error("there is no file `{}`", .0.display())]
    Missing(PathBuf),
    /// A folder, a pipe or a device: it has no size to announce.
    #[error("`{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file cannot be opened or read.
    #[error("cannot read `{}`: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: std::io::Error,
    },
    /// The file became shorter or longer during the upload.
    #[error("`{}` changed while it was being uploaded; nothing of it was used", .0.display())]
    Changed(PathBuf),
    /// The API refused it.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The storage refused it.
    #[error("the storage refused the file: {reason} (HTTP {status})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The reason given by the storage.
        reason: String,
    },
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
    /// The API's upload instructions are invalid for this file.
    #[error("the API's upload instructions are invalid: {0}")]
    Instructions(&'static str),
}

/// How a file was uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadMethod {
    /// In the body of the request.
    Direct,
    /// By one presigned PUT.
    SinglePut,
    /// In this many parts.
    Multipart(usize),
}

/// A stored file.
#[derive(Debug)]
pub struct Stored {
    /// The upload as the API last described it.
    pub upload: Upload,
    /// How it was stored.
    pub way: UploadMethod,
}

/// Stores `file`: in the request body if it is a small text, otherwise with presigned requests, in one piece or in parts.
///
/// # Errors
///
/// An [`UploadError`] after the retries of `api`. No usable upload is left behind, and the call may be repeated.
pub async fn store(api: &ApiClient, file: &SourceFile, progress: &Arc<ByteProgress>) -> Result<Stored, UploadError> {
    if file.size <= DIRECT_MAX_BYTES && file.is_text() {
        let content = file.read_whole().await?;
        // API Gateway passes the body of a text type on as text, which would corrupt invalid UTF-8.
        if std::str::from_utf8(&content).is_ok() {
            return store_directly(api, file, content.into(), progress).await;
        }
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
        return Ok(Stored { upload, way: UploadMethod::SinglePut });
    }
    store_in_parts(api, file, upload, parts.unwrap_or_default(), progress).await
}

async fn store_directly(
    api: &ApiClient,
    file: &SourceFile,
    content: Bytes,
    progress: &Arc<ByteProgress>,
) -> Result<Stored, UploadError> {
    let upload = api.upload_directly(&announcement(file, None), content).await?;
    progress.add(file.size);
    Ok(Stored { upload, way: UploadMethod::Direct })
}

async fn store_in_parts(
    api: &ApiClient,
    file: &SourceFile,
    upload: Upload,
    mut parts: Vec<PartView>,
    progress: &Arc<ByteProgress>,
) -> Result<Stored, UploadError> {
    let count = parts.len();
    parts.sort_by_key(|part| part.part_number);
    let Some(first) = parts.first() else {
        return Err(UploadError::Instructions("neither a URL nor parts"));
    };
    let transfer = &Transfer::to(&first.request.url, api.retry().clone())?;
    let mut offset = 0;
    let mut ranges = Vec::with_capacity(count);
    for part in parts {
        let end = offset + part.size;
        ranges.push((part, offset..end));
        offset = end;
    }
    if offset != file.size {
        return Err(UploadError::Instructions("the parts do not add up to the file"));
    }
    stream::iter(ranges)
        .map(async |(part, range)| transfer.put(file, &part.request, range, progress).await)
        .buffer_unordered(PARALLEL_PARTS)
        .try_collect::<()>()
        .await?;
    let upload = api.complete_upload(upload.file_guid).await?;
    Ok(Stored { upload, way: UploadMethod::Multipart(count) })
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
