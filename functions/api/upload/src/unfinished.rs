//! Announced uploads: what is stored of them, links to send the rest, and their deletion.
//!
//! **Delete.** In this order: abort the multipart upload, erase the object, remove the outstanding upload, remove the row.
//! If the process dies after one of these writes, the row is still there, and a repeated request does the rest; in between
//! the upload cannot be resumed. If the row went first, nobody could give the owner's room back before its day is over,
//! nor delete the parts before they expire.
//!
//! **Delete against complete.** Either S3 aborts the multipart upload first: then there will never be an object. Or S3
//! completes it first: then the object is erased. In both cases `complete` finds no row, or no object, and says so. An
//! upload by a single request can be stored after its deletion, with a link that is still valid. That object has no row;
//! the bucket's lifecycle removes it.

use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::keys;
use rowmill_core::model::outstanding::OUTSTANDING_FOR;
use rowmill_core::model::upload::{FetchFailure, Multipart, Upload, UploadState};
use rowmill_core::ports::{PARTS_MAX, PortError, UploadedPart};

use crate::announced::parse_sha256;
use crate::error::UploadError;
use crate::request::{PartRange, RequestView, SignPartsRequest, UploadView};
use crate::upload::Uploads;

/// Maximum number of parts an answer signs. A part takes about 2 KB of an answer that may have 6 MB.
const SIGNED_AT_ONCE: usize = 1000;

/// Maximum number of aborts of a multipart upload in one request. Each further one follows a part that came meanwhile.
const ABORTS: usize = 5;

/// State of an upload in the bucket.
enum Stored {
    /// The whole file. The upload is marked as ready now.
    Ready,
    /// Nothing yet of an upload by a single request.
    Nothing,
    /// These parts of the right length.
    Parts(Multipart, Vec<UploadedPart>),
    /// Neither parts nor a file: an abort that died left its row.
    Gone,
    /// It could not be fetched.
    Failed(FetchFailure),
}

impl Uploads {
    /// The state of an upload, with what the bucket has of it. An upload by one presigned request is ready as soon as
    /// its bytes are stored.
    pub async fn show(&self, owner: &Owner, file_guid: FileGuid) -> Result<UploadView, UploadError> {
        let mut upload = self.owned(owner, file_guid).await?;
        match self.stored(&mut upload).await? {
            Stored::Ready => Ok(UploadView::from(&upload)),
            Stored::Nothing => Ok(UploadView { bytes_stored: Some(0), ..UploadView::from(&upload) }),
            Stored::Parts(multipart, parts) => Ok(view_of_parts(&upload, &multipart, &parts)),
            Stored::Gone => Err(UploadError::Aborted(file_guid)),
            Stored::Failed(_) => Ok(UploadView::from(&upload)),
        }
    }

    /// Signs the missing parts again, or the request of an upload by a single one.
    ///
    /// An upload that no longer counts as outstanding counts again from now on: links for it promise storage again.
    ///
    /// # Errors
    /// See [`UploadError`]; `Ready` if nothing is missing.
    pub async fn sign(
        &self,
        owner: &Owner,
        file_guid: FileGuid,
        request: SignPartsRequest,
    ) -> Result<UploadView, UploadError> {
        let from = request.from.unwrap_or(1);
        if !(1..=PARTS_MAX).contains(&from) {
            return Err(UploadError::Field { field: "from", message: format!("must be from 1 to {PARTS_MAX}.") });
        }
        let mut upload = self.owned(owner, file_guid).await?;
        let stored = self.stored(&mut upload).await?;
        if upload.origin.is_some() && matches!(stored, Stored::Nothing | Stored::Parts(..)) {
            return Err(UploadError::Fetching(file_guid));
        }
        if !matches!(stored, Stored::Ready | Stored::Gone | Stored::Failed(_)) {
            self.count_in_again(&upload).await?;
        }
        let expiry = self.limits.links.expiry;
        let expires_at = self.clock.now() + expiry;
        match stored {
            Stored::Ready => Err(UploadError::Ready(file_guid)),
            Stored::Gone => Err(UploadError::Aborted(file_guid)),
            Stored::Failed(failure) => Err(UploadError::Failed(file_guid, failure)),
            Stored::Nothing => {
                let sha256 = upload.sha256.as_deref().map(parse_sha256).transpose()?;
                let (key, content_type) = (&upload.key, &upload.content_type);
                let request = self.transfers.presign_put(key, content_type, upload.size, sha256, expiry).await?;
                let upload_request = Some(RequestView::of(request, expires_at));
                Ok(UploadView { bytes_stored: Some(0), upload: upload_request, ..UploadView::from(&upload) })
            }
            Stored::Parts(multipart, parts) => {
                let mut missing = missing(&parts, from, multipart.parts_of(upload.size));
                let now = missing.by_ref().take(SIGNED_AT_ONCE);
                let signed = self.sign_parts(&upload, &multipart, now, expires_at).await?;
                let view = view_of_parts(&upload, &multipart, &parts);
                Ok(UploadView { parts: Some(signed), next_part: missing.next(), ..view })
            }
        }
    }

    /// Deletes an upload: what is stored of it, what it counts for, and its row.
    ///
    /// # Errors
    /// See [`UploadError`].
    pub async fn delete(&self, owner: &Owner, file_guid: FileGuid) -> Result<(), UploadError> {
        let upload = self.owned(owner, file_guid).await?;
        if let UploadState::Pending { multipart: Some(multipart) } = &upload.state {
            self.abort_multipart(&upload, &multipart.id).await?;
        }
        if self.has_own_object(&upload).await? {
            self.erasures.erase_object(&upload.key).await?;
        }
        self.outstanding.remove(owner, file_guid).await?;
        Ok(self.uploads.remove(file_guid).await?)
    }

    /// True if the object under its key may be its own. Another file may have been dropped under the same key since.
    async fn has_own_object(&self, upload: &Upload) -> Result<bool, PortError> {
        let UploadState::Ready { etag } = &upload.state else { return Ok(true) };
        if upload.key == keys::upload(upload.file_guid) {
            return Ok(true);
        }
        match self.objects.head(&upload.key).await {
            Ok(head) => Ok(head.etag == *etag),
            Err(PortError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Aborts until no part is left: a part that is being sent may survive an abort.
    pub async fn abort_multipart(&self, upload: &Upload, multipart: &str) -> Result<(), PortError> {
        for _ in 0..ABORTS {
            match self.multipart.abort_multipart(&upload.key, multipart).await {
                Ok(()) | Err(PortError::NotFound) => {}
                Err(error) => return Err(error),
            }
            match self.multipart.parts(&upload.key, multipart).await {
                Err(PortError::NotFound) => return Ok(()),
                Ok(parts) if parts.is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Err(PortError::unavailable("aborting an upload in parts", "parts are still arriving"))
    }

    /// State of an upload in the bucket.
    async fn stored(&self, upload: &mut Upload) -> Result<Stored, UploadError> {
        let multipart = match &upload.state {
            UploadState::Ready { .. } => return Ok(Stored::Ready),
            UploadState::Pending { multipart } => multipart.clone(),
            UploadState::Failed(failure) => return Ok(Stored::Failed(failure.clone())),
        };
        if let Some(multipart) = &multipart {
            match self.multipart.parts(&upload.key, &multipart.id).await {
                Ok(mut parts) => {
                    parts.retain(|part| part.size == multipart.length_of(part.number, upload.size));
                    return Ok(Stored::Parts(multipart.clone(), parts));
                }
                // Completed by a request that died before it marked the upload, or aborted.
                Err(PortError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match self.objects.head(&upload.key).await {
            Ok(head) if head.size == upload.size => {
                self.mark_ready(upload, head.etag).await?;
                Ok(Stored::Ready)
            }
            Ok(_) | Err(PortError::NotFound) if multipart.is_some() => Ok(Stored::Gone),
            Ok(_) | Err(PortError::NotFound) => Ok(Stored::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// Counts an upload as outstanding again if its day is over. If the process dies between the two writes, it does
    /// not count, and nobody has the links.
    async fn count_in_again(&self, upload: &Upload) -> Result<(), UploadError> {
        if self.clock.now() < upload.created_at + OUTSTANDING_FOR {
            return Ok(());
        }
        self.outstanding.remove(&upload.owner, upload.file_guid).await?;
        self.count_in(upload).await
    }
}

fn view_of_parts(upload: &Upload, multipart: &Multipart, parts: &[UploadedPart]) -> UploadView {
    UploadView {
        bytes_stored: Some(parts.iter().map(|part| part.size).sum()),
        parts_stored: Some(ranges(parts)),
        part_size: Some(multipart.part_size),
        ..UploadView::from(upload)
    }
}

/// The numbers of the parts as ranges. The parts are in order.
fn ranges(parts: &[UploadedPart]) -> Vec<PartRange> {
    let mut ranges: Vec<PartRange> = Vec::new();
    for part in parts {
        match ranges.last_mut() {
            Some(range) if range.last + 1 == part.number => range.last = part.number,
            _ => ranges.push(PartRange { first: part.number, last: part.number }),
        }
    }
    ranges
}

/// The numbers from `from` to `count` that no part has. The parts are in order.
fn missing(parts: &[UploadedPart], from: u32, count: u32) -> impl Iterator<Item = u32> {
    (from..=count).filter(|number| parts.binary_search_by_key(number, |part| part.number).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(numbers: &[u32]) -> Vec<UploadedPart> {
        numbers.iter().map(|&number| UploadedPart { number, etag: "e".into(), size: 1 }).collect()
    }

    #[test]
    fn stored_and_missing_parts_make_up_all_parts() {
        let stored = parts(&[1, 2, 5, 7, 8, 9]);
        let shown: Vec<(u32, u32)> = ranges(&stored).iter().map(|range| (range.first, range.last)).collect();
        assert_eq!(shown, [(1, 2), (5, 5), (7, 9)]);
        assert_eq!(missing(&stored, 1, 10).collect::<Vec<_>>(), [3, 4, 6, 10]);
        assert_eq!(missing(&stored, 5, 10).collect::<Vec<_>>(), [6, 10]);
        assert_eq!(missing(&stored, 11, 10).count(), 0);
        assert!(ranges(&[]).is_empty());
    }
}
