//! The results of a job that has ended, as links to its files.

use std::sync::Arc;
use std::time::Duration;

use crc_fast::{CrcAlgorithm, checksum};
use rowmill_api::results::{FileView, LinkView, ManifestView, ResultsView};
use rowmill_core::model::job::Job;
use rowmill_core::model::results::{MANIFEST, Manifest, crc64_text};
use rowmill_core::ports::{Clock, DirectTransfers, Objects, PortError, PresignedRequest, expiry};

/// The use case and the ports it works through.
pub struct JobResults {
    /// The objects with the manifest.
    pub objects: Arc<dyn Objects>,
    /// Creates the links.
    pub transfers: Arc<dyn DirectTransfers>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// How long a link is valid.
    pub link_expiry: Duration,
}

/// Why no results are shown. The texts are the problem details that the client reads.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The job has not ended.
    #[error("The job has not ended. Ask for its results when it has ended.")]
    Active,
    /// The job ended without results, or they have expired.
    #[error("The job has no results: they could not be composed before the job ended, or they have expired.")]
    None,
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl JobResults {
    /// The results of this job.
    ///
    /// # Errors
    /// See [`ResultsError`].
    pub async fn of(&self, job: &Job) -> Result<ResultsView, ResultsError> {
        if !job.status.is_terminal() {
            return Err(ResultsError::Active);
        }
        // Results of an earlier attempt do not show the outcome of the last one, which may have ended without results.
        let results = job.results.filter(|results| results.attempt == job.attempt).ok_or(ResultsError::None)?;
        let json = match self.objects.read(&results.manifest_key(job.job_guid)).await {
            Err(PortError::NotFound) => return Err(ResultsError::None),
            json => json?,
        };
        let manifest: Manifest =
            serde_json::from_slice(&json).map_err(|error| PortError::invalid("reading a manifest", error))?;
        let link = async |key: String, content_type: &str, name: &str| {
            let file_name = format!("{}-{}-{name}", job.job_type, job.job_guid);
            let link = self.transfers.presign_get(&key, content_type, &file_name, self.link_expiry).await;
            link.map(|PresignedRequest { url, .. }| LinkView { file_name, url })
        };
        // Links are signed locally, without a request.
        let expires_at = expiry(self.clock.now(), self.link_expiry);
        let mut files = Vec::with_capacity(manifest.files.len());
        for file in manifest.files {
            let key = results.file_key(job.job_guid, &file.name);
            files.push(FileView { link: link(key, &file.content_type, &file.name).await?, file });
        }
        let content_type = "application/json";
        let manifest_view = ManifestView {
            name: MANIFEST.to_owned(),
            content_type: content_type.to_owned(),
            bytes: json.len() as u64,
            crc64_nvme: crc64_text(checksum(CrcAlgorithm::Crc64Nvme, &json)),
            link: link(results.manifest_key(job.job_guid), content_type, MANIFEST).await?,
        };
        Ok(ResultsView {
            job_guid: job.job_guid,
            attempt: results.attempt,
            status: job.status,
            expires_at,
            files,
            left_out: manifest.left_out,
            manifest: manifest_view,
        })
    }
}
