//! Measures throughput, AWS requests, memory and cost of a job.

pub mod cost;
pub mod invocations;
pub mod memory;
pub mod report;
pub mod rows;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::{join, try_join_all};
use rowmill_api::cost::JobCost;
use rowmill_api::job::JobView;
use rowmill_api::request::CreateJobRequest;
use rowmill_core::model::job::states::Status;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::api::{ApiClient, ApiError};
use crate::follow::{FollowError, Observer, Patience, follow, took};
use crate::upload::{SourceFile, UploadError, UploadMethod, store};
use cost::FunctionUsage;
use invocations::LogPosition;
use memory::MemorySizes;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file of the benchmark cannot be written or read.
    #[error("cannot write or read {what}")]
    File {
        what: &'static str,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Upload(#[from] UploadError),
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The job was not followed to its end.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// The counts of the finished job are wrong, so its measurement is worthless.
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
    /// Each row is changed and written to a result file. It has no schema.
    Transform,
}

#[derive(Debug, Clone)]
pub struct Workload {
    pub bench_type: BenchType,
    pub rows: u64,
    /// True if each of its cells is quoted.
    pub quoted: bool,
    /// The schema of the rows; `None` if they are not checked.
    pub schema: Option<Value>,
    /// Number of live connections that watch the job. Without any it is polled.
    pub watchers: u32,
}

impl BenchType {
    /// Its name in the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Import => "import",
            Self::Transform => "transform",
        }
    }

    fn params(self, schema: Option<&Value>) -> Map<String, Value> {
        let mut params = Map::new();
        if let (Some(schema), Self::Validate | Self::Import) = (schema, self) {
            params.insert("schema".into(), schema.clone());
        }
        match self {
            Self::Validate => {}
            Self::Import => {
                params.insert("dataset".into(), json!("rowmill-bench"));
                params.insert("key".into(), json!(["id"]));
            }
            Self::Transform => {
                params.insert("mapping".into(), json!([{"rename": "name", "to": "label"}, {"drop": "token"}]));
            }
        }
        params
    }
}

/// The measurement of one run.
#[derive(Debug, Clone)]
pub struct Measurement {
    pub upload: Duration,
    /// From the job's creation to its end, by the API's clock.
    pub job: Duration,
    /// The usage that the API expected, and the one that the job reports.
    pub said: Said,
    /// Usage of the functions. `None` without access to their logs.
    pub usage: Option<FunctionUsage>,
}

/// The cost of a job, before and after it.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// The estimate. `None` if an older API has none.
    pub estimate: Option<JobCost>,
    /// The cost of the ended job.
    pub truth: Option<JobCost>,
}

/// Logs and memory sizes of the functions.
pub struct FunctionLogs<'a> {
    pub logs: &'a Path,
    pub memory: MemorySizes,
}

/// Runs one job over `file`, which has the rows of the workload, and measures it.
///
/// # Errors
///
/// See [`BenchError`]; [`BenchError::Inexact`] unless every row succeeded and was counted once.
pub async fn measure(
    api: &ApiClient,
    file: &SourceFile,
    workload: &Workload,
    function_logs: Option<&FunctionLogs<'_>>,
    observer: &mut impl Observer,
) -> Result<Measurement, BenchError> {
    let silent = crate::progress::ByteProgress::new(|_| ());
    let begun = Instant::now();
    let stored = store(api, file, None, &silent).await?;
    let upload = begun.elapsed();
    let new_job = CreateJobRequest {
        job_type: workload.bench_type.word().to_owned(),
        file_guid: Some(stored.upload.file_guid),
        params: workload.bench_type.params(workload.schema.as_ref()),
        ..CreateJobRequest::default()
    };
    let estimate = api.estimate_job(&new_job).await.ok().and_then(|estimate| estimate.cost.clone());
    let unreadable = |source| BenchError::File { what: "the functions' logs", source };
    let mark =
        function_logs.map(|function_logs| LogPosition::now(function_logs.logs)).transpose().map_err(unreadable)?;
    let begun = Instant::now();
    let job = api.create_job(&new_job, Uuid::new_v4()).await?;
    let patience = Patience { listens: workload.watchers > 0, ..Patience::default() };
    let others = (1..workload.watchers).map(async |_| follow(api, job.clone(), &patience, &mut Unseen).await);
    let (job, others) = join(follow(api, job.clone(), &patience, observer), try_join_all(others)).await;
    let (job, seen) = (job?, begun.elapsed());
    others?.iter().chain([&job]).try_for_each(|job| verify(job, workload.rows))?;
    let usage = match (&mark, function_logs) {
        (Some(mark), Some(function_logs)) => {
            mark.settle().await.map_err(unreadable)?;
            let invocations = mark.invocations().map_err(unreadable)?;
            let mut usage = FunctionUsage::of(&invocations, |function| function_logs.memory.of(function));
            usage.upload_puts = upload_puts(stored.way);
            Some(usage)
        }
        _ => None,
    };
    let said = Said { estimate, truth: job.cost.clone() };
    Ok(Measurement { upload, job: took(&job).unwrap_or(seen), said, usage })
}

/// The observer of a watcher that prints nothing.
struct Unseen;

impl Observer for Unseen {
    fn looked(&mut self, _: &JobView) {}

    fn quiet(&mut self, _: &JobView, _: Duration) {}
}

/// S3 write requests of an upload. A multipart upload needs two more, to start and to complete it.
fn upload_puts(way: UploadMethod) -> u64 {
    match way {
        UploadMethod::Direct | UploadMethod::SinglePut => 1,
        UploadMethod::Multipart(parts) => parts as u64 + 2,
    }
}

/// Checks that every row succeeded and was counted exactly once.
fn verify(job: &JobView, rows: u64) -> Result<(), BenchError> {
    let counts = (job.item_count, job.item_progress, job.items_succeeded);
    let nothing_else = job.items_failed == 0 && job.items_skipped == 0 && job.item_count_final;
    if job.status == Status::Completed && counts == (rows, rows, rows) && nothing_else {
        return Ok(());
    }
    let error = job.error.as_ref().map(|error| format!(" ({})", error.code.as_str())).unwrap_or_default();
    Err(BenchError::Inexact(format!(
        "job {} is {}{error} with {} items found, {} succeeded, {} failed and {} skipped of {rows}",
        job.job_guid,
        job.status.as_str(),
        job.item_count,
        job.items_succeeded,
        job.items_failed,
        job.items_skipped,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{job_guid, job_json};

    fn job(status: &str, succeeded: u64, failed: u64) -> JobView {
        let known = succeeded + failed;
        let counts = json!({"status": status, "itemCount": known, "itemCountFinal": true, "itemProgress": known,
            "itemsSucceeded": succeeded, "itemsFailed": failed});
        serde_json::from_value(job_json(counts)).unwrap()
    }

    #[test]
    fn only_exact_counts_are_a_result() {
        assert!(verify(&job("completed", 1000, 0), 1000).is_ok());
        assert!(verify(&job("completed", 1001, 0), 1000).is_err(), "one counted twice");
        assert!(verify(&job("completed", 999, 1), 1000).is_err(), "one failed");
        let error = verify(&job("failed", 10, 0), 1000).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("the counts are wrong: job {} is failed with 10 items", job_guid())),
            "{error}"
        );
    }

    #[test]
    fn an_import_has_a_dataset_and_a_key() {
        let schema = rows::schema();
        assert!(BenchType::Import.params(Some(&schema)).contains_key("key"));
        assert!(!BenchType::Validate.params(Some(&schema)).contains_key("dataset"));
        assert!(BenchType::Validate.params(None).is_empty());
    }
}
