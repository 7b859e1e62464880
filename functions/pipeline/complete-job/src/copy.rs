//! Copies the results of an ended job into an external bucket.
//!
//! The manifest that the row of an ended job names never changes. So whoever copies, and how often, stores the same
//! bytes under the same keys. The manifest comes last: a copy without it is not whole. An object beside the results says
//! how far the copy is: the next delivery of the message goes on from there, with the parts that the other bucket has.
//!
//! **If the process dies**: the message that ended the job is not acknowledged before the copy is whole or given up, and
//! each later message of the attempt goes on with it. A multipart upload that no progress names is left to a lifecycle
//! rule of the other bucket.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use rowmill_core::items::manifest::{copy_state, end_copy, read_manifest};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::keys;
use rowmill_core::model::results::{CopyState, MANIFEST, ManifestFile, Results};
use rowmill_core::ports::{Clock, MultipartObjects, Objects, PortError, UploadedPart, found, part_bytes};
use serde::{Deserialize, Serialize};

/// Parts that are copied at once, each held in memory.
const PARTS_AT_ONCE: usize = 3;

/// Copies results.
pub struct Copier {
    pub objects: Arc<dyn Objects>,
    pub multipart: Arc<dyn MultipartObjects>,
    pub clock: Arc<dyn Clock>,
    /// The length of a part, in bytes. A file that is longer than so many times the most parts has longer ones.
    pub part_bytes: usize,
}

/// How far a copy is, as it is stored.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Progress {
    /// Number of the files that are stored.
    files: usize,
    /// The multipart upload of the next one, if it has begun.
    multipart: Option<String>,
}

/// A file, and its copy.
struct File<'a> {
    from: &'a str,
    to: &'a str,
    bytes: u64,
    part_bytes: u64,
}

impl File<'_> {
    /// The range of a part, which are numbered from 1.
    fn range(&self, number: u64) -> std::ops::Range<u64> {
        let start = number.saturating_sub(1).saturating_mul(self.part_bytes).min(self.bytes);
        start..self.bytes.min(start + self.part_bytes)
    }
}

/// What has come of the parts of a file.
enum Parts {
    Joined,
    /// Time is up.
    Some,
    /// There is no such multipart upload any more: another run has joined it, or it is lost.
    Gone,
}

/// Why a copy does not go on.
enum Failure {
    /// Another try may help.
    Port(PortError),
    /// None will.
    Final(&'static str),
}

/// A failure at the results.
fn of_results(error: PortError) -> Failure {
    match error {
        PortError::NotFound | PortError::Changed => Failure::Final("The results are gone."),
        error => Failure::Port(error),
    }
}

/// A failure at the other bucket.
fn of_bucket(error: PortError) -> Failure {
    match error {
        PortError::Denied { .. } => Failure::Final("The policy of the bucket, or of its key, denies it."),
        PortError::NotFound => Failure::Final("There is no such bucket."),
        PortError::Invalid { .. } => Failure::Final("The bucket does not take it."),
        // Encrypted, the same part has another entity tag each time that it is stored.
        PortError::Changed => Failure::Port(PortError::unavailable("joining a copy", "a part was stored again")),
        error => Failure::Port(error),
    }
}

impl Copier {
    /// Copies these results until then. True if that is done, or there is nothing to copy.
    ///
    /// # Errors
    /// `Unavailable`: another try goes on.
    pub async fn copy(&self, job: JobGuid, results: &Results, until: Timestamp) -> Result<bool, PortError> {
        let Some((manifest, json)) = read_manifest(&*self.objects, job, results).await? else { return Ok(true) };
        let Some(to) = &manifest.copied_to else { return Ok(true) };
        if copy_state(&*self.objects, job, results.attempt).await?.0 == CopyState::Stored {
            return Ok(true);
        }
        let files = (&*manifest.files, &**to);
        let problem = match self.copy_all(job, results, files, json, until).await {
            Ok(true) => None,
            Ok(false) => return Ok(false),
            Err(Failure::Port(error)) => return Err(error),
            Err(Failure::Final(problem)) => {
                tracing::warn!(job.id = %job, problem, "results not copied");
                Some(problem)
            }
        };
        end_copy(&*self.objects, job, results.attempt, problem).await?;
        Ok(true)
    }

    async fn copy_all(
        &self,
        job: JobGuid,
        results: &Results,
        (files, to): (&[ManifestFile], &str),
        manifest: bytes::Bytes,
        until: Timestamp,
    ) -> Result<bool, Failure> {
        let key = keys::results_copy(job, results.attempt, "progress");
        let mut progress = self.progress(&key).await.map_err(Failure::Port)?;
        while let Some(file) = files.get(progress.files) {
            let (from, to) = (results.file_key(job, file), format!("{to}{}", file.file.name));
            let part_bytes = part_bytes(self.part_bytes as u64, file.file.bytes);
            let (content_type, bytes) = (&*file.file.content_type, file.file.bytes);
            let file = File { from: &from, to: &to, bytes, part_bytes };
            match &progress.multipart {
                None if bytes <= part_bytes => {
                    let bytes = self.objects.read(&from).await.map_err(of_results)?;
                    self.objects.put(&to, content_type, bytes, None).await.map_err(of_bucket)?;
                    progress.files += 1;
                }
                None => {
                    let begun = self.multipart.begin_multipart(&to, content_type).await.map_err(of_bucket)?;
                    progress.multipart = Some(begun);
                    self.put(&key, &progress).await?;
                }
                Some(multipart) => match self.copy_parts(&file, multipart, until).await? {
                    Parts::Joined => {
                        progress = Progress { files: progress.files + 1, multipart: None };
                        self.put(&key, &progress).await?;
                    }
                    Parts::Some => return Ok(false),
                    // The bytes are the same if it is stored again.
                    Parts::Gone => progress.multipart = None,
                },
            }
            if progress.multipart.is_none() && self.clock.now() >= until {
                self.put(&key, &progress).await?;
                return Ok(false);
            }
        }
        let stored = self.objects.put(&format!("{to}{MANIFEST}"), "application/json", manifest, None).await;
        stored.map(|_| true).map_err(of_bucket)
    }

    async fn progress(&self, key: &str) -> Result<Progress, PortError> {
        let Some(json) = found(self.objects.read(key).await)? else { return Ok(Progress::default()) };
        serde_json::from_slice(&json).map_err(|error| PortError::invalid("reading the progress of a copy", error))
    }

    async fn put(&self, key: &str, progress: &Progress) -> Result<(), Failure> {
        let json = serde_json::to_vec(progress).map_err(|error| PortError::invalid("copying results", error));
        let json = json.map_err(Failure::Port)?;
        let stored = self.objects.put(key, "application/json", json.into(), None).await;
        stored.map(|_| ()).map_err(Failure::Port)
    }

    /// Copies the parts that are not there, and joins them.
    async fn copy_parts(&self, file: &File<'_>, multipart: &str, until: Timestamp) -> Result<Parts, Failure> {
        let stored = found(self.multipart.parts(file.to, multipart).await).map_err(of_bucket)?;
        let Some(mut parts) = stored else { return Ok(Parts::Gone) };
        // Another version of this function may have cut the file in another way.
        parts.retain(|part| {
            let range = file.range(part.number.into());
            part.size == range.end - range.start
        });
        let etag = self.objects.head(file.from).await.map_err(of_results)?.etag;
        let has = |number: u64| parts.iter().any(|part| u64::from(part.number) == number);
        let missing: Vec<u64> = (1..=file.bytes.div_ceil(file.part_bytes)).filter(|number| !has(*number)).collect();
        let all = missing.len();
        // One at least, so that each invocation comes further.
        let in_time = missing.into_iter().enumerate().take_while(|(place, _)| *place == 0 || self.clock.now() < until);
        let copied: Vec<Option<UploadedPart>> = stream::iter(in_time)
            .map(|(_, number)| self.copy_part(file, multipart, &etag, number))
            .buffer_unordered(PARTS_AT_ONCE)
            .try_collect()
            .await?;
        let is_in_time = copied.len() == all;
        let Some(copied) = copied.into_iter().collect::<Option<Vec<_>>>() else { return Ok(Parts::Gone) };
        if !is_in_time {
            return Ok(Parts::Some);
        }
        parts.extend(copied);
        parts.sort_by_key(|part| part.number);
        let joined = found(self.multipart.complete_multipart(file.to, multipart, &parts).await).map_err(of_bucket)?;
        Ok(if joined.is_some() { Parts::Joined } else { Parts::Gone })
    }

    /// `None` if there is no such multipart upload any more.
    async fn copy_part(
        &self,
        file: &File<'_>,
        multipart: &str,
        etag: &str,
        number: u64,
    ) -> Result<Option<UploadedPart>, Failure> {
        let bytes = self.objects.read_range(file.from, etag, file.range(number)).await.map_err(of_results)?;
        let number =
            u32::try_from(number).map_err(|error| Failure::Port(PortError::invalid("copying a result", error)))?;
        found(self.multipart.put_part(file.to, multipart, number, bytes).await).map_err(of_bucket)
    }
}
