//! Downloads a result by its link, with the retries that the client's policy allows.

use std::io::ErrorKind;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_RANGE, HeaderMap, RANGE};
use reqwest::{Response, StatusCode, Url};
use rowmill_api::results::FileView;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::results::ResultFile;
use tokio::time::timeout;

use super::partial_file::PartialFile;
use super::{Destination, DownloadError};
use crate::api::{ApiClient, files_of, http_client};
use crate::progress::ByteProgress;
use crate::storage::{STALL_LIMIT, StorageRefusal};

/// The results of one job. Expired links are renewed.
pub struct ResultSource<'a> {
    api: &'a ApiClient,
    job_guid: JobGuid,
    stall_limit: Duration,
}

struct Failure {
    error: DownloadError,
    remedy: Remedy,
}

/// The step after a failure.
enum Remedy {
    /// Give up.
    None,
    /// Retry, after this delay if the storage asked for one.
    Retry(Option<Duration>),
    /// Retry with a new link.
    NewLink,
}

impl Failure {
    fn permanent(error: DownloadError) -> Self {
        Self { error, remedy: Remedy::None }
    }

    fn transient(error: DownloadError) -> Self {
        Self { error, remedy: Remedy::Retry(None) }
    }
}

impl<'a> ResultSource<'a> {
    pub fn new(api: &'a ApiClient, job_guid: JobGuid) -> Self {
        Self { api, job_guid, stall_limit: STALL_LIMIT }
    }

    pub fn with_stall_limit(self, stall_limit: Duration) -> Self {
        Self { stall_limit, ..self }
    }

    /// Downloads `file` to `place` and reports its bytes to `progress`.
    ///
    /// A retry resumes where the previous attempt stopped. After a wrong length or checksum it starts from the
    /// beginning.
    ///
    /// # Errors
    ///
    /// The [`DownloadError`] of the last attempt. There is no new file.
    pub async fn receive(
        &self,
        file: &FileView,
        place: &Destination,
        progress: &ByteProgress,
    ) -> Result<(), DownloadError> {
        let mut reception = Receiver {
            file: &file.file,
            checksum: checksum_of(&file.file)?,
            stall_limit: self.stall_limit,
            incoming: PartialFile::beside(place).map_err(|error| place.unwritable(error))?,
            place,
            progress,
        };
        let (mut url, mut renewed, mut failed) = (file.link.url.clone(), false, 0);
        while let Err(failure) = reception.attempt(&url).await {
            let retry_after = match failure.remedy {
                Remedy::NewLink if !renewed => {
                    renewed = true;
                    url = self.new_link(&file.file).await?;
                    continue;
                }
                Remedy::None | Remedy::NewLink => return Err(failure.error),
                Remedy::Retry(retry_after) => retry_after,
            };
            failed += 1;
            match self.api.retry().delay(failed, retry_after, fastrand::f64()) {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return Err(failure.error),
            }
        }
        reception.incoming.put_in_place(place).await.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => DownloadError::Exists(place.path.clone()),
            _ => place.unwritable(error),
        })
    }

    async fn new_link(&self, file: &ResultFile) -> Result<String, DownloadError> {
        let files = files_of(self.api.results(self.job_guid).await?);
        let same = files.into_iter().find(|other| is_same_content(&other.file, file));
        same.map(|file| file.link.url).ok_or_else(|| DownloadError::Changed(file.name.clone()))
    }
}

/// True if both are the same bytes under the same name.
fn is_same_content(one: &ResultFile, other: &ResultFile) -> bool {
    (&one.name, one.bytes, &one.crc64_nvme) == (&other.name, other.bytes, &other.crc64_nvme)
}

/// A running download.
struct Receiver<'a> {
    file: &'a ResultFile,
    checksum: u64,
    stall_limit: Duration,
    incoming: PartialFile,
    place: &'a Destination,
    progress: &'a ByteProgress,
}

impl Receiver<'_> {
    /// Fetches the missing bytes and verifies the file.
    async fn attempt(&mut self, url: &str) -> Result<(), Failure> {
        if self.incoming.length() < self.file.bytes {
            self.get_rest(url).await?;
        }
        if self.incoming.length() < self.file.bytes {
            let (received, expected) = (self.incoming.length(), self.file.bytes);
            return Err(Failure::transient(DownloadError::CutShort { name: self.name(), received, expected }));
        }
        match self.incoming.checksum() == self.checksum {
            true => Ok(()),
            false => Err(self.start_over_for("checksum").await),
        }
    }

    async fn get_rest(&mut self, url: &str) -> Result<(), Failure> {
        let url = Url::parse(url).map_err(|_| Failure::permanent(instructions(self.file, "an invalid URL")))?;
        // A client of its own: the API's token must never be sent to the storage.
        let http = http_client(&url).map_err(|error| Failure::permanent(error.into()))?;
        let origin = url.origin().ascii_serialization();
        // Range and length refer to the stored bytes, so the transfer must not be compressed.
        let mut request = http.get(url).header(ACCEPT_ENCODING, "identity");
        if self.incoming.length() > 0 {
            request = request.header(RANGE, format!("bytes={}-", self.incoming.length()));
        }
        let answer = timeout(self.stall_limit, request.send()).await.map_err(|_| self.stalled())?;
        let mut response = answer.map_err(|error| self.unreachable(&origin, error))?;
        response = self.check_start(response).await?;
        loop {
            let bytes = timeout(self.stall_limit, response.chunk()).await.map_err(|_| self.stalled())?;
            match bytes.map_err(|error| self.unreachable(&origin, error))? {
                Some(bytes) => self.take(&bytes).await?,
                None => return Ok(()),
            }
        }
    }

    /// The response, if it starts with the next missing byte.
    async fn check_start(&mut self, response: Response) -> Result<Response, Failure> {
        match response.status() {
            StatusCode::PARTIAL_CONTENT if range_start(response.headers()) == Some(self.incoming.length()) => {
                Ok(response)
            }
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => Err(self.start_over_for("length").await),
            // The storage ignored the range.
            StatusCode::OK if self.incoming.length() > 0 => {
                self.start_over().await?;
                Ok(response)
            }
            StatusCode::OK => Ok(response),
            // Expired, or never valid: a new link tells.
            StatusCode::FORBIDDEN => Err(self.refused(response, |_| Remedy::NewLink).await),
            _ => Err(self
                .refused(response, |refusal| match refusal.is_transient() {
                    true => Remedy::Retry(refusal.retry_after),
                    false => Remedy::None,
                })
                .await),
        }
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let room = self.file.bytes - self.incoming.length();
        if bytes.len() as u64 > room {
            return Err(self.start_over_for("length").await);
        }
        self.incoming.append(bytes).await.map_err(|error| Failure::permanent(self.place.unwritable(error)))?;
        self.progress.add(bytes.len() as u64);
        Ok(())
    }

    async fn start_over(&mut self) -> Result<(), Failure> {
        let thrown_away = self.incoming.start_over().await;
        let bytes = thrown_away.map_err(|error| Failure::permanent(self.place.unwritable(error)))?;
        self.progress.take_back(bytes);
        Ok(())
    }

    /// The failure of an attempt with a wrong `what`. The next attempt starts at the first byte.
    async fn start_over_for(&mut self, what: &'static str) -> Failure {
        match self.start_over().await {
            Ok(()) => Failure::transient(DownloadError::Mismatch { name: self.name(), what }),
            Err(failure) => failure,
        }
    }

    async fn refused(&self, response: Response, remedy: impl Fn(&StorageRefusal) -> Remedy) -> Failure {
        let refusal = StorageRefusal::read(response).await;
        let remedy = remedy(&refusal);
        let error = DownloadError::Refused { name: self.name(), status: refusal.status, reason: refusal.reason };
        Failure { error, remedy }
    }

    fn unreachable(&self, origin: &str, error: reqwest::Error) -> Failure {
        let hopeless = error.is_builder();
        let (name, origin, source) = (self.name(), origin.to_owned(), error.without_url());
        let error = DownloadError::Unreachable { name, origin, source };
        if hopeless { Failure::permanent(error) } else { Failure::transient(error) }
    }

    fn stalled(&self) -> Failure {
        Failure::transient(DownloadError::Stalled { name: self.name(), limit: self.stall_limit })
    }

    fn name(&self) -> String {
        self.place.name()
    }
}

/// The first byte of `Content-Range: bytes 100-199/200`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    range.trim().strip_prefix("bytes ")?.split_once('-')?.0.trim().parse().ok()
}

fn checksum_of(file: &ResultFile) -> Result<u64, DownloadError> {
    let bytes = BASE64_STANDARD.decode(&file.crc64_nvme).ok().and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
    bytes.map(u64::from_be_bytes).ok_or_else(|| instructions(file, "an invalid checksum"))
}

fn instructions(file: &ResultFile, reason: &'static str) -> DownloadError {
    DownloadError::Instructions { name: crate::terminal::escape_controls(&file.name), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_range_is_read() {
        let start = |text: &str| range_start(&HeaderMap::from_iter([(CONTENT_RANGE, text.parse().unwrap())]));
        assert_eq!(start("bytes 100-199/200"), Some(100));
        assert_eq!(start("bytes 0-0/*"), Some(0));
        assert_eq!((start("bytes */200"), start("rows 1-2/3"), start("")), (None, None, None));
    }
}
