//! The results of a job that has ended, as links to its files.

use std::sync::Arc;
use std::time::Duration;

use crc_fast::{CrcAlgorithm, checksum};
use rowmill_api::results::{CopyView, FileView, LinkView, ManifestView, ResultsView};
use rowmill_api::upload::RequestView;
use rowmill_core::items::manifest::{copy_state, read_manifest};
use rowmill_core::model::job::Job;
use rowmill_core::model::product::{OCTET_STREAM, ProductId};
use rowmill_core::model::results::{MANIFEST, crc64_text};
use rowmill_core::ports::{Clock, DirectTransfers, Objects, PortError, PresignedRequest, expiry};
use serde_json::{Map, Value};

/// The longest name of an input that goes into the names of its results, in bytes: no file system has longer ones.
const INPUT_NAME_MAX_BYTES: usize = 255;

/// The use case and the ports it works through.
pub struct JobResults {
    /// The objects with the manifest.
    pub objects: Arc<dyn Objects>,
    /// Creates the links.
    pub transfers: Arc<dyn DirectTransfers>,
    pub clock: Arc<dyn Clock>,
    pub link_expiry: Duration,
}

/// Why no results are shown. The texts are the problem details that the client reads.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    #[error("The job has not ended. Ask for its results when it has ended.")]
    Active,
    /// The job ended without results, or they have expired.
    #[error("The job has no results: they could not be composed before the job ended, or they have expired.")]
    None,
    #[error(transparent)]
    Port(#[from] PortError),
}

impl JobResults {
    /// A link to a product.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn product(&self, job: &Job, product: &ProductId) -> Result<RequestView, PortError> {
        let key = product.key(job.job_guid);
        let stored = self.objects.head(&key).await?;
        let content_type = stored.content_type.as_deref().unwrap_or(OCTET_STREAM);
        let link = self.transfers.presign_get(&key, content_type, product.name(), self.link_expiry).await?;
        Ok(RequestView::of(link, expiry(self.clock.now(), self.link_expiry)))
    }

    pub async fn of(&self, job: &Job) -> Result<ResultsView, ResultsError> {
        let results = job.end().ok_or(ResultsError::Active)?.results.as_ref().ok_or(ResultsError::None)?;
        let read = read_manifest(&*self.objects, job.job_guid, results).await?;
        let (manifest, json) = read.ok_or(ResultsError::None)?;
        let link = async |key: String, content_type: &str, name: &str| {
            let file_name = format!("{}-{}-{name}", job.job_type, job.job_guid);
            let saved_as =
                input_name(job.metadata.as_ref()).map_or_else(|| file_name.clone(), |input| format!("{input}-{name}"));
            let link = self.transfers.presign_get(&key, content_type, &saved_as, self.link_expiry).await;
            link.map(|PresignedRequest { url, .. }| LinkView { file_name, url })
        };
        // Links are signed locally, without a request.
        let expires_at = expiry(self.clock.now(), self.link_expiry);
        let mut files = Vec::with_capacity(manifest.files.len());
        for file in manifest.files {
            let (key, file) = (results.file_key(job.job_guid, &file), file.file);
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
        let copy = match manifest.copied_to {
            None => None,
            Some(to) => {
                let (state, problem) = copy_state(&*self.objects, job.job_guid, results.attempt).await?;
                Some(CopyView { to, state, problem })
            }
        };
        Ok(ResultsView {
            job_guid: job.job_guid,
            attempt: results.attempt,
            status: job.status(),
            expires_at,
            files,
            left_out: manifest.left_out,
            causes: manifest.causes,
            other_causes: manifest.other_causes,
            changes: manifest.changes,
            manifest: manifest_view,
            copy,
        })
    }
}

/// Name of the job's file as the client noted it, without a folder and the usual endings; `None` if it noted none.
fn input_name(metadata: Option<&Map<String, Value>>) -> Option<&str> {
    let noted = metadata?.get("fileName")?.as_str()?;
    let name = noted.rsplit(['/', '\\']).next()?;
    let name = [".gz", ".zst"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(name);
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    (!name.is_empty() && name.len() <= INPUT_NAME_MAX_BYTES).then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_named_after_the_file_that_the_client_noted() {
        for (noted, name) in [
            (json!({ "fileName": "customers.csv" }), Some("customers")),
            (json!({ "fileName": "2026.01.csv.gz" }), Some("2026.01")),
            (json!({ "fileName": "../a\\b c" }), Some("b c")),
            (json!({ "fileName": ".csv" }), None),
            (json!({ "fileName": "x".repeat(256) }), None),
            (json!({ "fileName": 7 }), None),
            (json!({}), None),
        ] {
            assert_eq!(input_name(noted.as_object()), name, "{noted}");
        }
    }
}
