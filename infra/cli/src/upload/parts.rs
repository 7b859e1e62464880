//! Sends a file in parts, in rounds: each sends what the storage does not have.
//!
//! A round ends when all its parts are sent, or soon after one of them could not be sent. Then the API is asked again,
//! which lists the parts in the storage and signs the missing ones. So expired signatures are replaced, and a part
//! whose reply was lost is not sent twice.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::{StreamExt, stream};
use rowmill_api::problem::ProblemCode;
use rowmill_api::upload::{PartView, UploadStatus};
use rowmill_core::model::ids::FileGuid;

use super::{SourceFile, Stored, Transfer, UploadError, UploadMethod};
use crate::api::{ApiClient, Upload};
use crate::progress::ByteProgress;

/// Parallel parts: enough to use the bandwidth, few enough to keep the machine usable.
const PARALLEL_PARTS: usize = 4;

pub struct Parts<'a> {
    file: &'a SourceFile,
    file_guid: FileGuid,
    part_size: u64,
    /// Presigned and not stored yet, in order; `None` if the API must be asked.
    missing: Option<Vec<PartView>>,
    /// The first missing part behind those.
    next: Option<u32>,
    /// Number of bytes the storage has, as far as this is known.
    stored: u64,
    sent: AtomicUsize,
}

impl<'a> Parts<'a> {
    /// All parts, as announced.
    ///
    /// # Errors
    ///
    /// [`UploadError::Instructions`] if they do not make up the file.
    pub fn announced(file: &'a SourceFile, upload: &Upload, mut parts: Vec<PartView>) -> Result<Self, UploadError> {
        parts.sort_by_key(|part| part.part_number);
        let (Some(part_size), false) = (upload.part_size, parts.is_empty()) else {
            return Err(UploadError::Instructions("neither a URL nor parts"));
        };
        if parts.iter().map(|part| part.size).sum::<u64>() != file.size {
            return Err(UploadError::Instructions("the parts do not add up to the file"));
        }
        Ok(Self { missing: Some(parts), ..Self::resumed(file, upload.file_guid, part_size) })
    }

    /// The parts of an upload that was announced before.
    pub const fn resumed(file: &'a SourceFile, file_guid: FileGuid, part_size: u64) -> Self {
        Self { file, file_guid, part_size, missing: None, next: None, stored: 0, sent: AtomicUsize::new(0) }
    }

    /// Sends what is missing and completes the upload.
    ///
    /// # Errors
    ///
    /// [`UploadError::Interrupted`] if several rounds in a row stored nothing; others if no further round can help.
    pub async fn send(
        mut self,
        api: &ApiClient,
        is_remembered: bool,
        progress: &Arc<ByteProgress>,
    ) -> Result<Stored, UploadError> {
        let patience = api.retry().of_transfers();
        let (mut fruitless, mut best) = (0, 0);
        loop {
            let error = match self.round(api, progress).await {
                Ok(Some(upload)) => {
                    let way = UploadMethod::Multipart(self.sent.into_inner());
                    return Ok(Stored { upload, way });
                }
                Ok(None) => continue,
                Err(error) if !may_pass(&error) => return Err(error),
                Err(error) => error,
            };
            // What is missing may be anywhere.
            (self.missing, self.next) = (None, None);
            fruitless = if self.stored > best { 1 } else { fruitless + 1 };
            best = best.max(self.stored);
            match patience.delay(fruitless, None, fastrand::f64()) {
                Some(delay) => tokio::time::sleep(delay).await,
                None => {
                    let (file_guid, stored, size) = (self.file_guid, self.stored, self.file.size);
                    let source = Box::new(error);
                    return Err(UploadError::Interrupted { source, file_guid, stored, size, is_remembered });
                }
            }
        }
    }

    /// One round. Returns the upload once it is complete.
    async fn round(&mut self, api: &ApiClient, progress: &Arc<ByteProgress>) -> Result<Option<Upload>, UploadError> {
        let missing = match self.missing.take() {
            Some(missing) => missing,
            None => match self.ask(api, progress).await? {
                Some(missing) => missing,
                // Completed by a request whose reply was lost.
                None => return Ok(Some(api.upload(self.file_guid).await?)),
            },
        };
        self.send_all(api, missing, progress).await?;
        if self.next.is_some() {
            return Ok(None);
        }
        Ok(Some(api.complete_upload(self.file_guid).await?))
    }

    /// Asks which parts are missing; `None` if the upload is complete.
    async fn ask(&mut self, api: &ApiClient, progress: &ByteProgress) -> Result<Option<Vec<PartView>>, UploadError> {
        let mut upload = match api.sign_parts(self.file_guid, self.next).await {
            Err(error) if error.is(ProblemCode::UploadReady) => return Ok(None),
            upload => upload?,
        };
        if upload.status == UploadStatus::Ready {
            return Ok(None);
        }
        let missing = upload.take(&["parts"], |view| view.parts.take()).unwrap_or_default();
        self.stored = upload.bytes_stored.unwrap_or(self.stored);
        self.next = upload.next_part;
        progress.set_stored(self.stored);
        Ok(Some(missing))
    }

    /// Sends these parts. Ends with the first error, once the parts that are being sent have ended too.
    async fn send_all(
        &mut self,
        api: &ApiClient,
        missing: Vec<PartView>,
        progress: &Arc<ByteProgress>,
    ) -> Result<(), UploadError> {
        let Some(first) = missing.first() else { return Ok(()) };
        let transfer = &Transfer::to(&first.request.url, api.retry().clone())?.of_parts();
        let missing = missing.into_iter().map(|part| Ok((self.range_of(&part)?, part)));
        let missing = missing.collect::<Result<Vec<_>, UploadError>>()?;
        let (failed, sent, file) = (&AtomicBool::new(false), &self.sent, self.file);
        let send = async |(range, part): (Range<u64>, PartView)| {
            if failed.load(Ordering::Relaxed) {
                return Ok(0);
            }
            let result = transfer.put(file, &part.request, range, progress).await;
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            result?;
            sent.fetch_add(1, Ordering::Relaxed);
            progress.add_stored(part.size);
            Ok(part.size)
        };
        let results: Vec<Result<u64, UploadError>> =
            stream::iter(missing).map(send).buffer_unordered(PARALLEL_PARTS).collect().await;
        self.stored += results.iter().flatten().sum::<u64>();
        let mut errors: Vec<UploadError> = results.into_iter().filter_map(Result::err).collect();
        // One that no further round can correct counts most.
        let worst = errors.iter().position(|error| !may_pass(error)).unwrap_or(0);
        if errors.is_empty() { Ok(()) } else { Err(errors.swap_remove(worst)) }
    }

    /// Byte range of a part in the file.
    fn range_of(&self, part: &PartView) -> Result<Range<u64>, UploadError> {
        let start = u64::from(part.part_number.saturating_sub(1)).checked_mul(self.part_size);
        let end = start.and_then(|start| Some(start.checked_add(part.size)?.min(self.file.size)));
        match (start, end) {
            (Some(start), Some(end)) if start < end && end - start == part.size => Ok(start..end),
            _ => Err(UploadError::Instructions("a part is not in the file")),
        }
    }
}

/// True if a later round may succeed: the connection may come back, and a new signature may be accepted.
fn may_pass(error: &UploadError) -> bool {
    match error {
        UploadError::Unreachable { .. } | UploadError::Stalled(_) => true,
        UploadError::Refused { status, .. } => *status == 403 || crate::api::is_transient(*status),
        // Incomplete: a part that was sent is not there.
        UploadError::Api(error) => error.is_transient() || error.is(ProblemCode::UploadIncomplete),
        _ => false,
    }
}
