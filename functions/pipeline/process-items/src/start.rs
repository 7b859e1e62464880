//! The function as a process: adapters built once, then chunks until the environment ends.

use std::sync::Arc;
use std::time::Duration;

use rowmill_aws::Runtime;
use rowmill_core::job_types::JobTypes;
use rowmill_core::ports::RecordStore;
use rowmill_targets::{Connections, Targets};

use crate::handler;
use crate::prepared::PreparedJobs;
use crate::process::ChunkProcessor;
use crate::run::RunLimits;

/// Runs `process-items` with the job types made from the records table, and those of the targets in
/// `ROWMILL_JOB_TARGETS`; a binary of one's own makes its own.
///
/// # Errors
/// Where a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start(job_types: impl FnOnce(Arc<dyn RecordStore>) -> JobTypes) -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("process-items").await?;
    let jobs = runtime.job_store()?;
    let job_types = with_targets(job_types(runtime.record_store()?), &runtime)?;
    let processor = Arc::new(ChunkProcessor {
        prepared: PreparedJobs::new(jobs.clone(), job_types),
        jobs,
        objects: runtime.objects()?,
        chunks: runtime.items_queue()?,
        isolated: runtime.isolate_queue()?,
        steps: runtime.job_steps()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: RunLimits {
            transient_retries: runtime.setting("ROWMILL_TRANSIENT_RETRIES", 4)?,
            backoff: Duration::from_millis(200),
            margin: Duration::from_secs(runtime.setting("ROWMILL_PROCESS_MARGIN_SECONDS", 5)?),
            poison_max: runtime.setting("ROWMILL_POISON_MAX", 10)?,
            output_max_bytes: runtime.setting("ROWMILL_CHUNK_OUTPUT_MAX_BYTES", 4 * 1024 * 1024)?,
        },
    });
    runtime
        .serve_queue(move |batch| {
            let processor = Arc::clone(&processor);
            async move { handler::handle(&processor, batch).await }
        })
        .await
}

/// The job types and those of the targets in `ROWMILL_JOB_TARGETS`.
fn with_targets(job_types: JobTypes, runtime: &Runtime) -> Result<JobTypes, lambda_runtime::Error> {
    let targets = Targets::parse(&runtime.setting("ROWMILL_JOB_TARGETS", String::new())?, &job_types.names())?;
    let secret = runtime.setting("ROWMILL_WEBHOOK_SECRET", String::new())?;
    let function = |arn: &str, timeout| runtime.function_target(arn, timeout);
    let types = targets.connected_types(&Connections::new(&function, &secret, runtime.clock()))?;
    Ok(job_types.with(types))
}
