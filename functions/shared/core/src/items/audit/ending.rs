//! The end of a job: its counts, its manifest and its result files.

use serde::Deserialize;

use super::state::{AuditState, words};
use super::{Auditor, Broken, found};
use crate::model::audit::AuditCode;
use crate::model::job::Job;
use crate::model::results::{Manifest, ResultKind, Results};
use crate::model::sha256::sha256_hex;
use crate::model::tally::Counts;
use crate::ports::PortError;

/// The counts of a job in its manifest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestCounts {
    item_count: u64,
    items_succeeded: u64,
    items_failed: u64,
    items_skipped: u64,
}

impl Auditor {
    /// Checks the counts of a job that has ended, and its results if there are any.
    pub(super) async fn check_ending(&self, job: &Job, state: &mut AuditState) -> Result<(), Broken> {
        let Some(end) = job.end() else { return Ok(()) };
        let counts = state.before;
        if end.counts != counts {
            let message = format!("The job has {}, but its attempts have {}.", words(end.counts), words(counts));
            return Err(found(AuditCode::CountsDiffer, message, job.attempt));
        }
        if let Some(results) = &end.results {
            self.check_results(job, results, counts, state).await?;
        }
        let Counts { succeeded, failed, skipped } = counts;
        state.evidence.add(&format!("end {} {} {succeeded} {failed} {skipped}", job.attempt, job.status().as_str()));
        Ok(())
    }

    async fn check_results(
        &self,
        job: &Job,
        results: &Results,
        counts: Counts,
        state: &mut AuditState,
    ) -> Result<(), Broken> {
        let wrong = |code: AuditCode, message: &str| found(code, message.to_owned(), job.attempt);
        let Some(json) = self.read(results.manifest_key(job.job_guid)).await? else {
            return Err(wrong(AuditCode::ManifestMissing, "The manifest of the results does not exist."));
        };
        state.evidence.add(&format!("manifest {} {}", job.attempt, sha256_hex(&json)));
        let invalid = || wrong(AuditCode::ManifestInvalid, "The manifest of the results cannot be read.");
        let manifest: Manifest = serde_json::from_slice(&json).map_err(|_| invalid())?;
        let told: ManifestCounts = serde_json::from_value(manifest.job).map_err(|_| invalid())?;
        let Counts { succeeded, failed, skipped } = counts;
        let expected = (counts.sum(), succeeded, failed, skipped);
        if (told.item_count, told.items_succeeded, told.items_failed, told.items_skipped) != expected {
            let message = format!(
                "The manifest has {} items ({} succeeded, {} failed, {} skipped), but the job has {}.",
                told.item_count,
                told.items_succeeded,
                told.items_failed,
                told.items_skipped,
                words(counts)
            );
            return Err(found(AuditCode::ManifestDiffers, message, job.attempt));
        }
        for stored in &manifest.files {
            let file = &stored.file;
            // Rows that have expired are left out, with the reason.
            let is_whole = !manifest.left_out.iter().any(|left_out| left_out.file == file.name);
            let listed = file.items.filter(|_| is_whole && file.kind == ResultKind::FailedRows);
            if let Some(listed) = listed.filter(|listed| *listed != failed) {
                let message = format!("The file {} has {listed} failed rows, but {failed} failed.", file.name);
                return Err(found(AuditCode::ManifestDiffers, message, job.attempt));
            }
            match self.objects.head(&results.file_key(job.job_guid, stored)).await {
                Ok(head) if head.size == file.bytes => {}
                Ok(head) => {
                    let message = format!(
                        "The file {} has {} bytes, but the manifest says {}.",
                        file.name, head.size, file.bytes
                    );
                    return Err(found(AuditCode::ResultFileDiffers, message, job.attempt));
                }
                Err(PortError::NotFound) => {
                    let message = format!("The file {}, which the manifest lists, does not exist.", file.name);
                    return Err(found(AuditCode::ResultFileMissing, message, job.attempt));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let lists_failed = manifest.files.iter().any(|stored| stored.file.kind == ResultKind::FailedRows);
        if failed > 0 && !lists_failed {
            let message = format!("{failed} items failed, but the manifest lists no file of failed rows.");
            return Err(found(AuditCode::ManifestDiffers, message, job.attempt));
        }
        Ok(())
    }
}
