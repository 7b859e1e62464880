//! A file that the stack fetches from an external server.

use std::time::Duration;

use rowmill_api::request::{FetchObject, FetchRequest, FetchSource};
use rowmill_api::upload::UploadStatus;
use tokio::time::sleep;

use super::UploadError;
use crate::api::{ApiClient, Upload};
use crate::follow::Reporter;
use crate::terminal::escape_controls;

/// Time between two looks at the upload.
const LOOK: Duration = Duration::from_secs(1);

/// What the name of an object in a bucket begins with.
const BUCKETS: &str = "s3://";

/// The argument of a command as a URL to fetch, if it is one, or as an object in a bucket.
pub fn url_of(argument: &std::path::Path) -> Option<&str> {
    let schemes = ["https://", "http://", BUCKETS];
    argument.to_str().filter(|text| schemes.iter().any(|scheme| text.starts_with(scheme)))
}

/// Has the file at this URL fetched, and waits until it is stored.
///
/// # Errors
/// [`UploadError`]; `Fetch` if the source does not give the file.
pub async fn fetch(
    api: &ApiClient,
    url: &str,
    content_type: Option<&str>,
    reporter: &Reporter,
) -> Result<Upload, UploadError> {
    let source = match url.strip_prefix(BUCKETS).and_then(|place| place.split_once('/')) {
        Some((bucket, key)) => {
            let s3 = Some(FetchObject { bucket: bucket.to_owned(), key: key.to_owned() });
            FetchSource { s3, ..FetchSource::default() }
        }
        None => FetchSource { url: Some(url.to_owned()), ..FetchSource::default() },
    };
    let request = FetchRequest { source, file_name: None, content_type: content_type.map(str::to_owned) };
    let mut upload = api.fetch_upload(&request).await?;
    let mut report = None;
    loop {
        if upload.status == UploadStatus::Ready {
            break;
        }
        if upload.status == UploadStatus::Failed {
            let detail = upload.failure.as_ref().map(|failure| escape_controls(&failure.detail));
            return Err(UploadError::Fetch(detail.unwrap_or_default()));
        }
        sleep(LOOK).await;
        upload = api.upload(upload.file_guid).await?;
        if upload.size > 0 {
            let name = upload.file_name.as_deref().unwrap_or("file");
            let report = report.get_or_insert_with(|| reporter.fetch(name, upload.size));
            report.progress.set_stored(upload.bytes_stored.unwrap_or(0));
        }
    }
    Ok(upload)
}
