//! Receives files in one of three ways: the bytes in the request, one presigned request, or one presigned request per
//! part.
//!
//! An upload's row is written when its bytes are stored, or when it is announced. If the process dies in between, an
//! object or a multipart upload without a row remains, and the bucket's lifecycle removes it.
//!
//! An announced upload counts as outstanding from before its row is written until its bytes are stored, or for a day. If the
//! process dies in between, it counts for that day.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::keys;
use rowmill_core::model::outstanding::{OUTSTANDING_FOR, OutstandingFull, OutstandingLimits, OutstandingUpload};
use rowmill_core::model::upload::{Upload, UploadState};
use rowmill_core::ports::{
    Clock, DirectTransfers, Entropy, MultipartObjects, Objects, OutstandingError, OutstandingUploads, PortError,
    UploadStore, UploadedPart, expiry,
};

pub use crate::limits::UploadLimits;
use crate::request::{
    AnnounceRequest, CONTENT_TYPE_MAX_BYTES, FILE_NAME_MAX_BYTES, PartView, UploadView, request_view,
};

/// The maximum number of parts of a file. Bigger files have longer parts. S3 allows 10,000 parts, but the answer with all
/// presigned requests must stay well below the 6 MB of a Lambda response.
const PARTS_MAX: u64 = 1000;

/// What a token of RFC 9110 may have beside letters and digits.
const TOKEN_MARKS: &str = "!#$%&'*+-.^_`|~";

/// How many presigned requests are created at once.
const PRESIGN_CONCURRENCY: usize = 16;

/// The use case and the ports it works through.
pub struct Uploads {
    /// The uploads' rows.
    pub uploads: Arc<dyn UploadStore>,
    /// Their objects.
    pub objects: Arc<dyn Objects>,
    /// Creates the presigned requests.
    pub transfers: Arc<dyn DirectTransfers>,
    /// Joins the parts of a file.
    pub multipart: Arc<dyn MultipartObjects>,
    /// The announced uploads that are not completed.
    pub outstanding: Arc<dyn OutstandingUploads>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Generates the names of uploads.
    pub entropy: Arc<dyn Entropy>,
    /// The limits.
    pub limits: UploadLimits,
}

/// Why a request for an upload fails. The texts are the problem details that the client reads.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// A field of the request is wrong.
    #[error("`{field}` {message}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What is wrong with it and what to do: the rest of the sentence that begins with the field's name.
        message: String,
    },
    /// The file is too big for this kind of upload, or for any.
    #[error("The file has {size} bytes, more than the maximum of {limit}. {advice}")]
    TooLarge {
        /// Its length, in bytes.
        size: u64,
        /// The limit, in bytes.
        limit: u64,
        /// What to do, as a sentence.
        advice: &'static str,
    },
    /// The owner has announced too much and not completed it.
    #[error(
        "You have {} announced uploads with {} bytes together that are not complete. At most {} uploads with {} bytes are \
         allowed. Complete some of them, or announce this file again after {}.",
        .full.uploads, .full.bytes, .limits.uploads, .limits.bytes, .full.free_at
    )]
    TooMany {
        /// What is outstanding, and until when.
        full: OutstandingFull,
        /// The limits.
        limits: OutstandingLimits,
    },
    /// The caller has no such upload.
    #[error("There is no upload {0}, or it has expired. Upload the file again.")]
    Unknown(FileGuid),
    /// Some of its bytes are missing.
    #[error("Upload {file} is incomplete: {stored} of {announced} bytes are stored. Send the rest first.")]
    Incomplete {
        /// The upload.
        file: FileGuid,
        /// The stored length, in bytes.
        stored: u64,
        /// The announced length, in bytes.
        announced: u64,
    },
    /// The stored length is not the announced one.
    #[error("Upload {file} has {stored} bytes, but {announced} were announced. Upload the file again.")]
    OtherSize {
        /// The upload.
        file: FileGuid,
        /// The stored length, in bytes.
        stored: u64,
        /// The announced length, in bytes.
        announced: u64,
    },
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl Uploads {
    /// Stores the bytes of the request itself.
    ///
    /// # Errors
    /// See [`UploadError`].
    pub async fn store(
        &self,
        owner: &Owner,
        content_type: &str,
        file_name: Option<&str>,
        bytes: Bytes,
    ) -> Result<UploadView, UploadError> {
        let size = bytes.len() as u64;
        check_names(file_name, content_type)?;
        if size > self.limits.direct_max_bytes {
            let advice = "Announce it with a JSON body and send it to the presigned URL in the answer.";
            return Err(UploadError::TooLarge { size, limit: self.limits.direct_max_bytes, advice });
        }
        let mut upload = self.new_upload(owner, content_type, file_name, size);
        let etag = self.objects.put(&upload.key, content_type, bytes, None).await?;
        upload.state = UploadState::Ready { etag };
        self.uploads.create(&upload).await?;
        Ok(upload.view())
    }

    /// Stores the announcement of a file, and returns the requests to send it with.
    ///
    /// # Errors
    /// See [`UploadError`].
    pub async fn announce(&self, owner: &Owner, request: &AnnounceRequest) -> Result<UploadView, UploadError> {
        check_names(Some(&request.file_name), &request.content_type)?;
        let limit = self.limits.files.max_bytes.min(self.limits.outstanding.bytes);
        if request.size > limit {
            let advice = "Split it into several files.";
            return Err(UploadError::TooLarge { size: request.size, limit, advice });
        }
        let sha256 = request.sha256.as_deref().map(parse_sha256).transpose()?;
        let mut upload = self.new_upload(owner, &request.content_type, Some(&request.file_name), request.size);
        upload.sha256.clone_from(&request.sha256);
        let expires_at = upload.created_at + self.limits.links.expiry;
        if request.size > self.limits.single_put_max_bytes {
            if sha256.is_some() {
                let message = format!(
                    "cannot be checked for a file of more than {} bytes, because it is sent in parts. Leave it out.",
                    self.limits.single_put_max_bytes
                );
                return Err(UploadError::Field { field: "sha256", message });
            }
            self.count_in(&upload).await?;
            return self.announce_parts(upload, expires_at).await;
        }
        self.count_in(&upload).await?;
        self.uploads.create(&upload).await?;
        let expiry = self.limits.links.expiry;
        let request =
            self.transfers.presign_put(&upload.key, &upload.content_type, upload.size, sha256, expiry).await?;
        Ok(UploadView { upload: Some(request_view(request, expires_at)), ..upload.view() })
    }

    async fn announce_parts(&self, mut upload: Upload, expires_at: Timestamp) -> Result<UploadView, UploadError> {
        let multipart = self.multipart.begin_multipart(&upload.key, &upload.content_type).await?;
        upload.state = UploadState::Pending { multipart: Some(multipart.clone()) };
        self.uploads.create(&upload).await?;
        let part_size = self.limits.part_bytes.max(upload.size.div_ceil(PARTS_MAX));
        let part = |number: u32| {
            let (upload, multipart) = (&upload, &multipart);
            async move {
                let size = part_size.min(upload.size - u64::from(number - 1) * part_size);
                let expiry = self.limits.links.expiry;
                let request = self.transfers.presign_part(&upload.key, multipart, number, size, expiry).await?;
                Ok::<_, PortError>(PartView { part_number: number, size, request: request_view(request, expires_at) })
            }
        };
        let count = u32::try_from(upload.size.div_ceil(part_size)).unwrap_or(u32::MAX);
        let requests = (1..=count).map(part).collect::<Vec<_>>();
        let parts = stream::iter(requests).buffered(PRESIGN_CONCURRENCY).try_collect().await?;
        Ok(UploadView { parts: Some(parts), part_size: Some(part_size), ..upload.view() })
    }

    /// Completes the upload, and joins its parts if it has any. A repeated call changes nothing.
    ///
    /// # Errors
    /// See [`UploadError`].
    pub async fn complete(&self, owner: &Owner, file_guid: FileGuid) -> Result<UploadView, UploadError> {
        let mut upload = self.owned(owner, file_guid).await?;
        let multipart = match &upload.state {
            UploadState::Ready { .. } => return Ok(upload.view()),
            UploadState::Pending { multipart } => multipart.clone(),
        };
        if let Some(multipart) = multipart {
            self.join_parts(&upload, &multipart).await?;
        }
        let incomplete = |stored| UploadError::Incomplete { file: file_guid, stored, announced: upload.size };
        let head = match self.objects.head(&upload.key).await {
            Err(PortError::NotFound) => return Err(incomplete(0)),
            head => head?,
        };
        if head.size != upload.size {
            let (stored, announced) = (head.size, upload.size);
            return Err(UploadError::OtherSize { file: file_guid, stored, announced });
        }
        self.mark_ready(&mut upload, head.etag).await?;
        Ok(upload.view())
    }

    async fn join_parts(&self, upload: &Upload, multipart: &str) -> Result<(), UploadError> {
        let parts = match self.multipart.parts(&upload.key, multipart).await {
            // Joined before by a request whose reply was lost: the object shows the result.
            Err(PortError::NotFound) => return Ok(()),
            parts => parts?,
        };
        let stored: u64 = parts.iter().map(|part| part.size).sum();
        let gapless = (1..).zip(&parts).all(|(number, part): (u32, &UploadedPart)| part.number == number);
        if stored != upload.size || !gapless {
            return Err(UploadError::Incomplete { file: upload.file_guid, stored, announced: upload.size });
        }
        match self.multipart.complete_multipart(&upload.key, multipart, &parts).await {
            Err(PortError::NotFound) => Ok(()),
            joined => Ok(joined?),
        }
    }

    /// The state of an upload. An upload by one presigned request is ready as soon as its bytes are stored.
    ///
    /// # Errors
    /// See [`UploadError`].
    pub async fn show(&self, owner: &Owner, file_guid: FileGuid) -> Result<UploadView, UploadError> {
        let mut upload = self.owned(owner, file_guid).await?;
        if upload.state == (UploadState::Pending { multipart: None }) {
            match self.objects.head(&upload.key).await {
                Ok(head) if head.size == upload.size => {
                    self.mark_ready(&mut upload, head.etag).await?;
                }
                Ok(_) | Err(PortError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(upload.view())
    }

    /// Counts an announced upload as outstanding, if it fits.
    async fn count_in(&self, upload: &Upload) -> Result<(), UploadError> {
        let (file_guid, bytes, now) = (upload.file_guid, upload.size, upload.created_at);
        let outstanding = OutstandingUpload { file_guid, bytes, until: now + OUTSTANDING_FOR };
        let limits = self.limits.outstanding;
        self.outstanding.add(&upload.owner, &outstanding, limits, now).await.map_err(|error| match error {
            OutstandingError::Full(full) => UploadError::TooMany { full, limits },
            OutstandingError::Port(error) => error.into(),
        })
    }

    /// Notes that all bytes are stored. The upload is no longer outstanding before it is ready, so that a repeated request
    /// does both.
    async fn mark_ready(&self, upload: &mut Upload, etag: String) -> Result<(), UploadError> {
        self.outstanding.remove(&upload.owner, upload.file_guid).await?;
        self.uploads.mark_ready(upload.file_guid, &etag).await?;
        upload.state = UploadState::Ready { etag };
        Ok(())
    }

    async fn owned(&self, owner: &Owner, file_guid: FileGuid) -> Result<Upload, UploadError> {
        match self.uploads.owned(owner, file_guid, self.clock.now()).await {
            Err(PortError::NotFound) => Err(UploadError::Unknown(file_guid)),
            upload => Ok(upload?),
        }
    }

    fn new_upload(&self, owner: &Owner, content_type: &str, file_name: Option<&str>, size: u64) -> Upload {
        let (file_guid, now) = (self.entropy.file_guid(), self.clock.now());
        Upload {
            file_guid,
            owner: owner.clone(),
            file_name: file_name.map(str::to_owned),
            content_type: content_type.to_owned(),
            size,
            sha256: None,
            key: keys::upload(file_guid),
            state: UploadState::Pending { multipart: None },
            created_at: now,
            expires_at: expiry(now, self.limits.files.retention),
        }
    }
}

fn check_names(file_name: Option<&str>, content_type: &str) -> Result<(), UploadError> {
    let printable = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
    if let Some(name) = file_name
        && (name.len() > FILE_NAME_MAX_BYTES || !printable(name))
    {
        let message = format!("must have 1 to {FILE_NAME_MAX_BYTES} bytes and no control characters.");
        return Err(UploadError::Field { field: "fileName", message });
    }
    if content_type.len() > CONTENT_TYPE_MAX_BYTES
        || !printable(content_type)
        || !content_type.is_ascii()
        || !is_media_type(content_type)
    {
        let message = format!("must be a media type of at most {CONTENT_TYPE_MAX_BYTES} bytes, such as `text/csv`.");
        return Err(UploadError::Field { field: "contentType", message });
    }
    Ok(())
}

/// Whether it is `type/subtype` (RFC 9110), with or without parameters behind it.
fn is_media_type(content_type: &str) -> bool {
    let is_token =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || TOKEN_MARKS.contains(c));
    let name = content_type.split(';').next().unwrap_or_default().trim_end();
    name.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

fn parse_sha256(hex: &str) -> Result<[u8; 32], UploadError> {
    let error = || UploadError::Field { field: "sha256", message: "must have 64 hexadecimal digits.".into() };
    if hex.len() != 64 || !hex.is_ascii() {
        return Err(error());
    }
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| error())?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| error())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::is_media_type;

    #[test]
    fn a_media_type_is_two_tokens_with_or_without_parameters() {
        for good in ["text/csv", "text/csv; charset=utf-8", "application/vnd.ms-excel", "a/b ;"] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in ["", "/", "text", "text/", "/csv", "text/csv/x", "te xt/csv", " text/csv", "text csv; a/b"] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}
