//! How fast a job goes, what it asks of AWS and what that costs.

pub mod cost;
pub mod invocations;
pub mod memory;
pub mod report;
pub mod rows;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::api::{ApiClient, ApiError, Job, JobStatus, NewJob};
use crate::follow::{FollowError, Observer, Patience, follow};
use crate::upload::{SourceFile, UploadError, UploadWay, store};

use cost::Usage;
use invocations::LogMark;
use memory::MemorySizes;

/// Why a run has no measurement.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file of the benchmark cannot be written or read.
    #[error("cannot write or read {what}")]
    File {
        /// Which one.
        what: &'static str,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// The rows could not be stored.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// The API did not take the job.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The job was not seen to its end.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// The counts of the finished job are not what they must be: nothing else about it is worth measuring.
    #[error("the counts are wrong: {0}")]
    Inexact(String),
}

/// The job types that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BenchType {
    /// Each row is checked against a schema.
    Validate,
    /// Each row is checked and written to the records table.
    Import,
}

impl BenchType {
    /// The API's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Import => "import",
        }
    }

    fn params(self) -> Map<String, Value> {
        let mut params = Map::from_iter([("schema".to_owned(), rows::schema())]);
        if self == Self::Import {
            params.insert("dataset".into(), json!("rowmill-bench"));
            params.insert("key".into(), json!(["id"]));
        }
        params
    }
}

/// One run, measured.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// From the file here to a stored upload.
    pub upload: Duration,
    /// From the job's creation to its end, by the API's clock.
    pub job: Duration,
    /// What the functions used; None where their logs are not at hand.
    pub usage: Option<Usage>,
}

/// Where the functions' logs and memory sizes are found.
pub struct Insight<'a> {
    /// Folder of the logs.
    pub logs: &'a Path,
    /// Memory by function.
    pub memory: MemorySizes,
}

/// Runs one job over `file`, which holds `rows` rows, and measures it.
///
/// # Errors
///
/// See [`BenchError`]; [`BenchError::Inexact`] unless every row succeeded and was counted once.
pub async fn measure(
    api: &ApiClient,
    file: &SourceFile,
    rows: u64,
    bench_type: BenchType,
    insight: Option<&Insight<'_>>,
    observer: &mut impl Observer,
) -> Result<Measurement, BenchError> {
    let silent = crate::progress::ByteProgress::new(|_| ());
    let begun = Instant::now();
    let stored = store(api, file, &silent).await?;
    let upload = begun.elapsed();
    let unreadable = |source| BenchError::File { what: "the functions' logs", source };
    let mark = insight.map(|insight| LogMark::now(insight.logs)).transpose().map_err(unreadable)?;
    let new_job = NewJob {
        job_type: bench_type.word().to_owned(),
        file_guid: Some(stored.upload.file_guid),
        params: bench_type.params(),
        ..NewJob::default()
    };
    let begun = Instant::now();
    let job = api.create_job(&new_job, Uuid::new_v4()).await?;
    let job = follow(api, job, &Patience::default(), observer).await?;
    let seen = begun.elapsed();
    verify(&job, rows)?;
    let usage = match (&mark, insight) {
        (Some(mark), Some(insight)) => {
            mark.settle().await.map_err(unreadable)?;
            let invocations = mark.invocations().map_err(unreadable)?;
            let mut usage = Usage::of(&invocations, |function| insight.memory.of(function));
            usage.upload_puts = upload_puts(stored.way);
            Some(usage)
        }
        _ => None,
    };
    Ok(Measurement { upload, job: job.took().unwrap_or(seen), usage })
}

/// S3 writes that storing a file takes: starting and completing a multipart upload are requests too.
fn upload_puts(way: UploadWay) -> u64 {
    match way {
        UploadWay::Direct | UploadWay::SinglePut => 1,
        UploadWay::Multipart(parts) => parts as u64 + 2,
    }
}

/// Every row must have succeeded, and have been counted once.
fn verify(job: &Job, rows: u64) -> Result<(), BenchError> {
    let counts = (job.item_count, job.item_progress, job.items_succeeded);
    let nothing_else = job.items_failed == 0 && job.items_skipped == 0 && job.item_count_final;
    if job.status == JobStatus::Completed && counts == (rows, rows, rows) && nothing_else {
        return Ok(());
    }
    let error = job.error.as_ref().map(|error| format!(" ({})", error.code)).unwrap_or_default();
    Err(BenchError::Inexact(format!(
        "job {} is {}{error} with {} items found, {} succeeded, {} failed and {} skipped of {rows}",
        job.job_guid,
        job.status.word(),
        job.item_count,
        job.items_succeeded,
        job.items_failed,
        job.items_skipped,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(status: &str, succeeded: u64, failed: u64) -> Job {
        serde_json::from_value(json!({
            "jobGuid": "g", "jobType": "validate", "status": status, "itemCount": succeeded + failed,
            "itemCountFinal": true, "itemProgress": succeeded + failed, "itemsSucceeded": succeeded,
            "itemsFailed": failed,
        }))
        .unwrap()
    }

    #[test]
    fn only_exact_counts_are_a_result() {
        assert!(verify(&job("completed", 1000, 0), 1000).is_ok());
        assert!(verify(&job("completed", 1001, 0), 1000).is_err(), "one counted twice");
        assert!(verify(&job("completed", 999, 1), 1000).is_err(), "one failed");
        let error = verify(&job("failed", 10, 0), 1000).unwrap_err().to_string();
        assert!(error.starts_with("the counts are wrong: job g is failed with 10 items"), "{error}");
    }

    #[test]
    fn an_import_has_a_dataset_and_a_key() {
        assert!(BenchType::Import.params().contains_key("key"));
        assert!(!BenchType::Validate.params().contains_key("dataset"));
    }
}
