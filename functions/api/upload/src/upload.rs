//! Receives files in one of three ways: the bytes in the request, one presigned request, or one for each part.
//!
//! An upload's row is written when its bytes are stored, or when it is announced. If the process dies in between, an
//! object or a multipart upload without a row remains, and the bucket's lifecycle removes it.
//!
//! An announced upload counts as outstanding from before its row is written until its bytes are stored or it is
//! aborted, or for a day. If the process dies in between, it counts for that day. What becomes of an upload that is not
//! complete is in [`unfinished`](crate::unfinished).

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::keys;
use rowmill_core::model::outstanding::{OUTSTANDING_FOR, OutstandingUpload};
use rowmill_core::model::upload::{Multipart, Upload, UploadState};
use rowmill_core::ports::{
    Clock, DirectTransfers, Entropy, MultipartObjects, ObjectErasures, Objects, OutstandingUploads, PortError,
    UploadStore, UploadedPart, expiry,
};

use crate::announced::{check_names, parse_sha256};
pub use crate::error::UploadError;
pub use crate::limits::UploadLimits;
use crate::request::{AnnounceRequest, PartView, RequestView, UploadView};

/// The maximum number of parts of a file. Bigger files have longer parts. S3 allows 10,000 parts, but the answer with
/// all presigned requests must stay well below the 6 MB of a Lambda response.
const PARTS_MAX: u64 = 1000;

const PRESIGN_CONCURRENCY: usize = 16;

/// The use case and the ports it works through.
#[derive(Clone)]
pub struct Uploads {
    pub uploads: Arc<dyn UploadStore>,
    pub objects: Arc<dyn Objects>,
    /// Creates the presigned requests.
    pub transfers: Arc<dyn DirectTransfers>,
    /// Joins the parts of a file.
    pub multipart: Arc<dyn MultipartObjects>,
    pub erasures: Arc<dyn ObjectErasures>,
    pub outstanding: Arc<dyn OutstandingUploads>,
    pub clock: Arc<dyn Clock>,
    /// Generates the names of uploads.
    pub entropy: Arc<dyn Entropy>,
    pub limits: UploadLimits,
}

impl Uploads {
    /// Stores the bytes of the request itself.
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
        Ok(UploadView::from(&upload))
    }

    /// Stores the announcement of a file, and returns the requests to send it with.
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
        Ok(UploadView { upload: Some(RequestView::of(request, expires_at)), ..UploadView::from(&upload) })
    }

    async fn announce_parts(&self, mut upload: Upload, expires_at: Timestamp) -> Result<UploadView, UploadError> {
        let id = self.multipart.begin_multipart(&upload.key, &upload.content_type).await?;
        let part_size = self.limits.part_bytes.max(upload.size.div_ceil(PARTS_MAX));
        let multipart = Multipart { id, part_size };
        upload.state = UploadState::Pending { multipart: Some(multipart.clone()) };
        self.uploads.create(&upload).await?;
        let parts = self.sign_parts(&upload, &multipart, 1..=multipart.parts_of(upload.size), expires_at).await?;
        Ok(UploadView { parts: Some(parts), part_size: Some(part_size), ..UploadView::from(&upload) })
    }

    /// The presigned requests of these parts.
    pub(crate) async fn sign_parts(
        &self,
        upload: &Upload,
        multipart: &Multipart,
        numbers: impl Iterator<Item = u32>,
        expires_at: Timestamp,
    ) -> Result<Vec<PartView>, PortError> {
        let part = |number: u32| async move {
            let (size, expiry) = (multipart.length_of(number, upload.size), self.limits.links.expiry);
            let request = self.transfers.presign_part(&upload.key, &multipart.id, number, size, expiry).await?;
            Ok::<_, PortError>(PartView { part_number: number, size, request: RequestView::of(request, expires_at) })
        };
        let requests = numbers.map(part).collect::<Vec<_>>();
        stream::iter(requests).buffered(PRESIGN_CONCURRENCY).try_collect().await
    }

    /// Completes the upload, and joins its parts if it has any. A repeated call changes nothing.
    pub async fn complete(&self, owner: &Owner, file_guid: FileGuid) -> Result<UploadView, UploadError> {
        let mut upload = self.owned(owner, file_guid).await?;
        let multipart = match &upload.state {
            UploadState::Ready { .. } => return Ok(UploadView::from(&upload)),
            UploadState::Pending { multipart } => multipart.clone(),
            UploadState::Failed(failure) => return Err(UploadError::Failed(file_guid, failure.clone())),
        };
        if let Some(multipart) = &multipart {
            self.join_parts(&upload, &multipart.id).await?;
        }
        let head = match self.objects.head(&upload.key).await {
            // Neither parts nor a file.
            Err(PortError::NotFound) if multipart.is_some() => return Err(UploadError::Aborted(file_guid)),
            Err(PortError::NotFound) => return Err(self.incomplete(&upload, 0).await),
            head => head?,
        };
        if head.size != upload.size {
            let (stored, announced) = (head.size, upload.size);
            return Err(UploadError::OtherSize { file: file_guid, stored, announced });
        }
        self.mark_ready(&mut upload, head.etag).await?;
        Ok(UploadView::from(&upload))
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
            return Err(self.incomplete(upload, stored).await);
        }
        match self.multipart.complete_multipart(&upload.key, multipart, &parts).await {
            Err(PortError::NotFound) => Ok(()),
            joined => Ok(joined?),
        }
    }

    /// Why an upload of which so many bytes are stored cannot be completed. If its row is gone, an abort has deleted
    /// the rest.
    async fn incomplete(&self, upload: &Upload, stored: u64) -> UploadError {
        match self.owned(&upload.owner, upload.file_guid).await {
            Err(UploadError::Unknown(file)) => UploadError::Aborted(file),
            _ => UploadError::Incomplete { file: upload.file_guid, stored, announced: upload.size },
        }
    }

    /// Counts an announced upload as outstanding from now on, if it fits.
    pub async fn count_in(&self, upload: &Upload) -> Result<(), UploadError> {
        let (file_guid, bytes, now) = (upload.file_guid, upload.size, self.clock.now());
        let outstanding = OutstandingUpload { file_guid, bytes, until: now + OUTSTANDING_FOR };
        let limits = self.limits.outstanding;
        let added = self.outstanding.add(&upload.owner, &outstanding, limits, now).await;
        added.map_err(|error| UploadError::of_outstanding(error, limits))
    }

    /// Notes that all bytes are stored. The upload is no longer outstanding before it is ready, so that a repeated
    /// request does both.
    pub async fn mark_ready(&self, upload: &mut Upload, etag: String) -> Result<(), UploadError> {
        self.outstanding.remove(&upload.owner, upload.file_guid).await?;
        match self.uploads.mark_ready(upload.file_guid, &etag).await {
            Err(PortError::NotFound) => return Err(UploadError::Aborted(upload.file_guid)),
            marked => marked?,
        }
        upload.state = UploadState::Ready { etag };
        Ok(())
    }

    pub(crate) async fn owned(&self, owner: &Owner, file_guid: FileGuid) -> Result<Upload, UploadError> {
        match self.uploads.owned(owner, file_guid, self.clock.now()).await {
            Err(PortError::NotFound) => Err(UploadError::Unknown(file_guid)),
            upload => Ok(upload?),
        }
    }

    pub(crate) fn new_upload(&self, owner: &Owner, content_type: &str, file_name: Option<&str>, size: u64) -> Upload {
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
            origin: None,
            created_at: now,
            expires_at: expiry(now, self.limits.files.retention),
        }
    }
}
