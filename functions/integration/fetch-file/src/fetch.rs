//! Fetches the file of an upload, part by part.
//!
//! **Ranges.** The first look at the file tells its length and its version. Each range becomes a part of one multipart
//! upload, which the row names. So the parts that the bucket has are the only state: whoever goes on, after a crash or
//! beside another invocation, reads the ranges that are missing, all of the same version. Two invocations that store the
//! same part store the same bytes.
//!
//! **A server without ranges, or without versions.** An invocation reads the whole file into a multipart upload of its
//! own, and the row then names the first one that is whole. So no file is made of two readings.
//!
//! **If the process dies**: before the row names the multipart upload, the bucket's lifecycle removes it, and the next
//! delivery begins anew; after that, the next delivery goes on. The row of a file that is given up says so before its
//! parts are deleted: what is left of them is the lifecycle's.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use rowmill_core::model::messages::FetchMessage;
use rowmill_core::model::outstanding::OUTSTANDING_FOR;
use rowmill_core::model::upload::{FetchBegun, FetchFailure, Multipart, Upload, UploadState};
use rowmill_core::ports::{PortError, Queue, RemoteError, RemoteFile, RemoteFiles, part_bytes};
use rowmill_core::progress::waits::Waker;
use upload::announced::is_media_type;
use upload::fetched::UNKNOWN_TYPE;
use upload::upload::{UploadError, Uploads};

/// The time limit of an invocation. After a crash a file continues a little later than this.
pub const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Time before the end of an invocation at which it stops reading.
pub const MARGIN: Duration = Duration::from_secs(40);

/// Parts that are read at once, if they are not too long together.
const PARTS_AT_ONCE: usize = 4;

/// Most bytes of the parts that are read at once. A function has 512 MB.
const PARTS_BYTES: u64 = 128 * 1024 * 1024;

/// The source does not give the file.
const REFUSED: &str = "source_refused";

/// Rowmill could not store the file, again and again.
pub const INTERNAL: &str = "internal_error";

/// The source does not answer, again and again.
pub const UNAVAILABLE: &str = "source_unavailable";

/// The file has changed while it was fetched.
const CHANGED: &str = "source_changed";

/// The source knows no ranges, and the file takes longer than an invocation; or it takes longer than the upload counts as
/// outstanding.
const TOO_SLOW: &str = "source_too_slow";

const TOO_LARGE: &str = "file_too_large";

/// The owner has announced too much beside it.
const TOO_MANY: &str = "too_many_uploads";

/// How far an invocation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetched {
    /// The file is stored, or nobody wants it any more.
    Ended,
    /// The rest is for another invocation, which is called.
    Continues,
}

/// What a copy has come to.
struct Copied {
    /// True if all parts are stored.
    all: bool,
    /// Time after which the source wants to be asked for the rest.
    wait: Duration,
}

impl Copied {
    const ALL: Self = Self { all: true, wait: Duration::ZERO };
}

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Another try may help.
    #[error("{detail}")]
    Busy { detail: String, retry_after: Option<Duration> },
    /// Another try does not help.
    #[error("{}", .0.detail)]
    Failed(FetchFailure),
    #[error(transparent)]
    Port(#[from] PortError),
}

/// The use case and the ports it works through.
pub struct Fetcher {
    /// Uploads, which this one becomes complete like.
    pub files: Uploads,
    /// For the rest of a long file.
    pub fetches: Arc<dyn Queue<FetchMessage>>,
    pub remote: Arc<dyn RemoteFiles>,
    /// Starts the jobs that wait for a file.
    pub waker: Waker,
}

impl Fetcher {
    /// Fetches a file, or as much of it as it can until then.
    ///
    /// # Errors
    /// [`FetchError`]: nothing more was stored.
    pub async fn fetch(&self, message: &FetchMessage, until: Timestamp) -> Result<Fetched, FetchError> {
        while let Some((upload, url)) = self.wanted(message).await? {
            if self.now() >= upload.created_at + OUTSTANDING_FOR {
                return Err(failed(TOO_SLOW, "The source did not give the whole file within a day.".to_owned()));
            }
            match &upload.state {
                UploadState::Pending { multipart: Some(multipart) } if upload.size == 0 => {
                    self.store_empty(&upload, multipart).await?;
                }
                UploadState::Pending { multipart: Some(multipart) } => {
                    let Copied { all, wait } = self.copy(&upload, &url, multipart, until).await?;
                    if all {
                        return self.complete(&upload).await;
                    }
                    self.fetches.send_later(std::slice::from_ref(message), wait).await?;
                    return Ok(Fetched::Continues);
                }
                _ => self.begin(&upload, &url, until).await?,
            }
        }
        // Another invocation may have ended it between the first look of this one and its count.
        self.files.outstanding.remove(&message.owner, message.file_guid).await?;
        Ok(Fetched::Ended)
    }

    /// The upload and its URL, if it is still to be fetched.
    async fn wanted(&self, message: &FetchMessage) -> Result<Option<(Upload, String)>, PortError> {
        let upload = self.upload(message).await?;
        let upload = upload.filter(|upload| matches!(upload.state, UploadState::Pending { .. }));
        Ok(upload.and_then(|upload| {
            let url = upload.origin.as_ref()?.url.clone()?;
            Some((upload, url))
        }))
    }

    /// Notes why a file cannot be fetched, and deletes what is stored of it.
    pub async fn give_up(&self, message: &FetchMessage, failure: &FetchFailure) -> Result<(), PortError> {
        let upload = self.upload(message).await?;
        match self.files.uploads.fail(message.file_guid, failure).await {
            // Another invocation has stored it, or its owner has aborted it.
            Ok(()) | Err(PortError::Changed | PortError::NotFound) => {}
            Err(error) => return Err(error),
        }
        if let Some(upload) = upload
            && let UploadState::Pending { multipart: Some(multipart) } = &upload.state
        {
            self.files.abort_multipart(&upload, &multipart.id).await?;
        }
        self.files.outstanding.remove(&message.owner, message.file_guid).await
    }

    async fn upload(&self, message: &FetchMessage) -> Result<Option<Upload>, PortError> {
        rowmill_core::ports::found(self.files.uploads.upload(message.file_guid, self.now()).await)
    }

    fn now(&self) -> Timestamp {
        self.files.clock.now()
    }

    /// Takes the first look, and has the row name a multipart upload. Stores the whole file if its server does not give
    /// a part of it.
    async fn begin(&self, upload: &Upload, url: &str, until: Timestamp) -> Result<(), FetchError> {
        let file = self.remote.look(url).await?;
        let content_type = match file.content_type.as_deref() {
            Some(said) if upload.content_type == UNKNOWN_TYPE && is_media_type(said) => said,
            _ => &upload.content_type,
        };
        let upload = &Upload { content_type: content_type.to_owned(), ..upload.clone() };
        if let Some(size) = file.size {
            self.count(upload, size).await?;
        }
        match file {
            RemoteFile { size: Some(size), validator, .. } if size == 0 || validator.is_some() => {
                let id = self.files.multipart.begin_multipart(&upload.key, &upload.content_type).await?;
                self.claim(upload, size, validator, Multipart { id, part_size: self.part_size(size) }).await
            }
            RemoteFile { size, .. } => self.read_whole(upload, url, size, until).await,
        }
    }

    /// Has the row name this multipart upload, unless it names another one.
    async fn claim(
        &self,
        upload: &Upload,
        size: u64,
        validator: Option<String>,
        multipart: Multipart,
    ) -> Result<(), FetchError> {
        let id = multipart.id.clone();
        let content_type = upload.content_type.clone();
        let begun = FetchBegun { size, content_type, validator, multipart };
        match self.files.uploads.begin_fetch(upload.file_guid, &begun).await {
            Err(PortError::Changed | PortError::NotFound) => Ok(self.files.abort_multipart(upload, &id).await?),
            claimed => Ok(claimed?),
        }
    }

    /// Reads the file from its beginning to its end.
    async fn read_whole(
        &self,
        upload: &Upload,
        url: &str,
        expected: Option<u64>,
        until: Timestamp,
    ) -> Result<(), FetchError> {
        let id = self.files.multipart.begin_multipart(&upload.key, &upload.content_type).await?;
        let part_size = self.part_size(self.files.limits.files.max_bytes);
        let multipart = Multipart { id, part_size };
        let read = async {
            let size = self.read_parts(upload, url, &multipart, until).await?;
            match expected {
                None => self.count(upload, size).await?,
                Some(expected) if expected != size => return Err(RemoteError::Changed.into()),
                Some(_) => {}
            }
            Ok(size)
        };
        match read.await {
            Ok(size) => self.claim(upload, size, None, multipart).await,
            Err(error) => {
                self.files.abort_multipart(upload, &multipart.id).await?;
                Err(error)
            }
        }
    }

    /// Stores what a reading brings as parts. Returns its length.
    async fn read_parts(
        &self,
        upload: &Upload,
        url: &str,
        multipart: &Multipart,
        until: Timestamp,
    ) -> Result<u64, FetchError> {
        let part_size = usize::try_from(multipart.part_size).unwrap_or(usize::MAX);
        let mut reading = self.remote.read(url).await?;
        let (mut size, mut number, mut part) = (0_u64, 1, BytesMut::new());
        loop {
            let piece = reading.next().await?;
            let is_last = piece.is_none();
            let piece = piece.unwrap_or_default();
            size += piece.len() as u64;
            self.check_size(size)?;
            part.extend_from_slice(&piece);
            while part.len() >= part_size || (is_last && !part.is_empty()) {
                let bytes = part.split_to(part_size.min(part.len())).freeze();
                self.files.multipart.put_part(&upload.key, &multipart.id, number, bytes).await?;
                number += 1;
            }
            if is_last {
                return Ok(size);
            }
            if self.now() >= until {
                let limit = TIME_LIMIT.saturating_sub(MARGIN).as_secs();
                let detail =
                    format!("The source gives no ranges of the file, and the whole takes longer than {limit} s.");
                return Err(failed(TOO_SLOW, detail));
            }
        }
    }

    /// Copies the parts that are missing.
    async fn copy(
        &self,
        upload: &Upload,
        url: &str,
        multipart: &Multipart,
        until: Timestamp,
    ) -> Result<Copied, FetchError> {
        let stored = match self.files.multipart.parts(&upload.key, &multipart.id).await {
            // Another invocation has completed it.
            Err(PortError::NotFound) => return Ok(Copied::ALL),
            stored => stored?,
        };
        let validator = upload.origin.as_ref().and_then(|origin| origin.validator.as_deref());
        // They are in order.
        let is_stored = |number: &u32| {
            let place = stored.binary_search_by_key(number, |part| part.number);
            place.is_ok_and(|place| stored[place].size == multipart.length_of(*number, upload.size))
        };
        let missing: Vec<u32> = (1..=multipart.parts_of(upload.size)).filter(|number| !is_stored(number)).collect();
        let Some(validator) = validator.filter(|_| !missing.is_empty()) else { return Ok(Copied::ALL) };
        let count = missing.len();
        let copies = missing.into_iter().map(|number| self.copy_part(upload, url, validator, multipart, number));
        let at_once = (PARTS_BYTES / multipart.part_size.max(1)).clamp(1, PARTS_AT_ONCE as u64) as usize;
        let mut copies = stream::iter(copies.collect::<Vec<_>>()).buffer_unordered(at_once);
        let (mut copied, mut failures) = (0, Vec::new());
        // A connection that breaks takes no other one with it. If all of them do, the source is down.
        while self.now() < until && failures.len() < PARTS_AT_ONCE {
            let left = until.duration_since(self.now()).try_into().unwrap_or_default();
            let copy = tokio::select! {
                biased;
                copy = copies.next() => copy,
                () = self.files.clock.sleep(left) => break,
            };
            match copy {
                None => break,
                Some(Ok(())) => copied += 1,
                Some(Err(busy @ FetchError::Busy { .. })) => failures.push(busy),
                Some(Err(error)) => return Err(error),
            }
        }
        let slow = || RemoteError::busy("The source is so slow that no part of the file came in time.").into();
        let asked = |error: &FetchError| match error {
            FetchError::Busy { retry_after, .. } => *retry_after,
            _ => None,
        };
        match copied {
            0 => Err(failures.pop().unwrap_or_else(slow)),
            copied => {
                Ok(Copied { all: copied == count, wait: failures.iter().filter_map(asked).max().unwrap_or_default() })
            }
        }
    }

    async fn copy_part(
        &self,
        upload: &Upload,
        url: &str,
        validator: &str,
        multipart: &Multipart,
        number: u32,
    ) -> Result<(), FetchError> {
        let start = u64::from(number - 1) * multipart.part_size;
        let range = start..start + multipart.length_of(number, upload.size);
        let bytes = self.remote.read_range(url, (validator, upload.size), range).await?;
        self.files.multipart.put_part(&upload.key, &multipart.id, number, bytes).await?;
        Ok(())
    }

    async fn complete(&self, upload: &Upload) -> Result<Fetched, FetchError> {
        match self.files.complete(&upload.owner, upload.file_guid).await {
            Ok(_) | Err(UploadError::Unknown(_)) => Ok(Fetched::Ended),
            Err(UploadError::Port(error)) => Err(error.into()),
            Err(error) => Err(FetchError::Busy { detail: error.to_string(), retry_after: None }),
        }
    }

    /// Stores an empty file. No multipart upload can, but its row names one, as that of any other file.
    async fn store_empty(&self, upload: &Upload, multipart: &Multipart) -> Result<(), FetchError> {
        let etag = self.files.objects.put(&upload.key, &upload.content_type, Bytes::new(), None).await?;
        self.files.abort_multipart(upload, &multipart.id).await?;
        match self.files.mark_ready(&mut upload.clone(), etag).await {
            Err(UploadError::Port(error)) => Err(error.into()),
            // Its owner has aborted it meanwhile.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Counts the upload as outstanding with its length, which was not known before.
    async fn count(&self, upload: &Upload, size: u64) -> Result<(), FetchError> {
        self.check_size(size)?;
        self.files.outstanding.remove(&upload.owner, upload.file_guid).await?;
        match self.files.count_in(&Upload { size, ..upload.clone() }).await {
            Ok(()) => Ok(()),
            Err(UploadError::Port(error)) => Err(error.into()),
            Err(full) => Err(failed(TOO_MANY, full.to_string())),
        }
    }

    fn check_size(&self, size: u64) -> Result<(), FetchError> {
        let limit = self.files.limits.files.max_bytes.min(self.files.limits.outstanding.bytes);
        match size <= limit {
            true => Ok(()),
            false => Err(failed(TOO_LARGE, format!("The file has more than the maximum of {limit} bytes."))),
        }
    }

    fn part_size(&self, size: u64) -> u64 {
        part_bytes(self.files.limits.part_bytes, size)
    }
}

fn failed(code: &str, detail: String) -> FetchError {
    FetchError::Failed(FetchFailure { code: code.to_owned(), detail })
}

impl From<RemoteError> for FetchError {
    fn from(error: RemoteError) -> Self {
        let detail = error.to_string();
        match error {
            RemoteError::Busy { detail, retry_after } => Self::Busy { detail, retry_after },
            RemoteError::Refused(_) => failed(REFUSED, detail),
            RemoteError::Changed => failed(CHANGED, detail),
        }
    }
}
