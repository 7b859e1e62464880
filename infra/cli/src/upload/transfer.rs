//! Sends a range of a file with a presigned request, with a stall timeout and retries.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Method, Url};
use rowmill_api::upload::RequestView;

use super::file::unreadable;
use super::{SourceFile, UploadError};
use crate::api::{RetryPolicy, http_client};
use crate::progress::ByteProgress;
use crate::storage::{STALL_LIMIT, StorageRefusal};

/// A client of the storage. It is separate from the API client, because the API's token must never be sent there.
pub struct Transfer {
    http: reqwest::Client,
    retry: RetryPolicy,
    stall_limit: Duration,
    /// True if bytes whose reply was lost are sent again at once.
    repeats_lost: bool,
}

struct Failure {
    error: UploadError,
    transient: bool,
    retry_after: Option<Duration>,
}

impl Failure {
    fn permanent(error: UploadError) -> Self {
        Self { error, transient: false, retry_after: None }
    }

    fn transient(error: UploadError) -> Self {
        Self { error, transient: true, retry_after: None }
    }
}

impl Transfer {
    pub fn to(url: &str, retry: RetryPolicy) -> Result<Self, UploadError> {
        let http = http_client(&parse(url)?)?;
        Ok(Self { http, retry, stall_limit: STALL_LIMIT, repeats_lost: true })
    }

    /// The same client for parts: if all bytes of one were sent and the reply was lost, it may be stored. The caller
    /// asks before it sends them again.
    pub fn of_parts(mut self) -> Self {
        self.repeats_lost = false;
        self
    }

    pub fn with_stall_limit(mut self, stall_limit: Duration) -> Self {
        self.stall_limit = stall_limit;
        self
    }

    /// Sends the bytes of `range` with exactly the signed headers.
    ///
    /// # Errors
    ///
    /// The [`UploadError`] of the last attempt. Its bytes are no longer counted in `progress`.
    pub async fn put(
        &self,
        file: &SourceFile,
        request: &RequestView,
        range: Range<u64>,
        progress: &Arc<ByteProgress>,
    ) -> Result<(), UploadError> {
        let mut failed = 0;
        loop {
            let sent = Arc::new(AtomicU64::new(0));
            let Err(failure) = self.try_put(file, request, range.clone(), progress, &sent).await else {
                return Ok(());
            };
            // An earlier attempt stored the file, and only its answer was lost: no other client has this request, and
            // the storage checks the checksum that is part of it.
            if failed > 0 && matches!(failure.error, UploadError::Refused { status: 412, .. }) {
                return Ok(());
            }
            let sent = sent.load(Ordering::Relaxed);
            progress.take_back(sent);
            let is_lost = matches!(failure.error, UploadError::Unreachable { .. } | UploadError::Stalled(_));
            if is_lost && sent == range.end - range.start && !self.repeats_lost {
                return Err(failure.error);
            }
            failed += 1;
            let delay = self.retry.delay(failed, failure.retry_after, fastrand::f64());
            match delay.filter(|_| failure.transient) {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return Err(failure.error),
            }
        }
    }

    async fn try_put(
        &self,
        file: &SourceFile,
        request: &RequestView,
        range: Range<u64>,
        progress: &Arc<ByteProgress>,
        sent: &Arc<AtomicU64>,
    ) -> Result<(), Failure> {
        let url = parse(&request.url).map_err(Failure::permanent)?;
        let origin = url.origin().ascii_serialization();
        let headers = signed_headers(request, range.end - range.start).map_err(Failure::permanent)?;
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| Failure::permanent(UploadError::Instructions("an unknown HTTP method")))?;
        let counter = (Arc::clone(progress), Arc::clone(sent));
        let body = file
            .stream(range, move |bytes| {
                counter.0.add(bytes);
                counter.1.fetch_add(bytes, Ordering::Relaxed);
            })
            .await
            .map_err(|error| Failure::permanent(unreadable(&file.path, error)))?;
        let request = self.http.request(method, url).headers(headers).body(Body::wrap_stream(body));
        let answer = tokio::select! {
            answer = request.send() => answer,
            () = stand_still(sent, self.stall_limit) => {
                return Err(Failure::transient(UploadError::Stalled(self.stall_limit)));
            }
        };
        // A changed file is the cause of any failure.
        if !file.is_unchanged().await {
            return Err(Failure::permanent(UploadError::Changed(file.path.clone())));
        }
        let source = match answer {
            Ok(response) => return accepted(response).await,
            Err(error) => error.without_url(),
        };
        Err(Failure::transient(UploadError::Unreachable { origin, source }))
    }
}

/// Returns when the count has not changed for `limit`.
async fn stand_still(sent: &AtomicU64, limit: Duration) {
    loop {
        let before = sent.load(Ordering::Relaxed);
        tokio::time::sleep(limit).await;
        if sent.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

async fn accepted(response: reqwest::Response) -> Result<(), Failure> {
    if response.status().is_success() {
        return Ok(());
    }
    let refusal = StorageRefusal::read(response).await;
    let (transient, retry_after) = (refusal.is_transient(), refusal.retry_after);
    let error = UploadError::Refused { status: refusal.status, reason: refusal.reason };
    Err(Failure { error, transient, retry_after })
}

fn signed_headers(request: &RequestView, length: u64) -> Result<HeaderMap, UploadError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) else {
            return Err(UploadError::Instructions("an invalid header"));
        };
        // The host is part of the URL.
        if name != HOST {
            headers.insert(name, value);
        }
    }
    // S3 does not accept chunked transfer encoding, so the length must be set.
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(headers)
}

fn parse(url: &str) -> Result<Url, UploadError> {
    Url::parse(url).map_err(|_| UploadError::Instructions("an invalid URL"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn the_signed_headers_are_sent_with_the_length_of_the_range() {
        let headers = [("Content-Type", "text/csv"), ("host", "s3"), ("content-length", "1")];
        let request = RequestView {
            method: "PUT".into(),
            url: "http://127.0.0.1/x".into(),
            headers: headers.map(|(name, value)| (name.into(), value.into())).into(),
            expires_at: Timestamp::MAX,
        };
        let headers = signed_headers(&request, 7).unwrap();
        assert_eq!(headers.get("content-type").unwrap(), "text/csv");
        assert_eq!(headers.get_all(CONTENT_LENGTH).iter().collect::<Vec<_>>(), ["7"]);
        assert!(headers.get(HOST).is_none());
    }
}
