//! The function as a process: adapters built once, then requests until the environment ends.

use std::sync::Arc;
use std::time::Duration;

use rowmill_aws::Runtime;
use rowmill_core::job_types::JobTypes;
use rowmill_core::ports::Ceilings;
use rowmill_core::text::ChunkLimits;
use rowmill_targets::Targets;

use crate::create::{CreateLimits, Creator};
use crate::handler;

/// Runs `create-job` for these job types, see [`creator`]; a binary of one's own hands its own types over.
///
/// # Errors
/// Where a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start(job_types: JobTypes) -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("create-job").await?;
    let creator = Arc::new(creator(&runtime, job_types)?);
    runtime
        .serve_http(move |request| {
            let creator = Arc::clone(&creator);
            async move { handler::handle(&creator, request).await }
        })
        .await
}

/// The use case with the adapters and limits that the environment gives, for these job types and those of the targets in
/// `ROWMILL_JOB_TARGETS`.
///
/// # Errors
/// Where a setting is missing or wrong.
pub fn creator(runtime: &Runtime, job_types: JobTypes) -> Result<Creator, lambda_runtime::Error> {
    let targets = Targets::parse(&runtime.setting("ROWMILL_JOB_TARGETS", String::new())?, &job_types.names())?;
    let job_types = job_types.with(targets.types());
    let idempotency_hours: u64 = runtime.setting("ROWMILL_IDEMPOTENCY_HOURS", 24)?;
    Ok(Creator {
        jobs: runtime.job_store()?,
        uploads: runtime.upload_store()?,
        objects: runtime.objects()?,
        splits: runtime.split_queue()?,
        job_types,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: CreateLimits {
            chunks: ChunkLimits {
                max_items: runtime.setting("ROWMILL_CHUNK_MAX_ITEMS", 500)?,
                max_bytes: runtime.setting("ROWMILL_CHUNK_MAX_BYTES", 1024 * 1024)?,
                max_record_bytes: runtime.setting("ROWMILL_RECORD_MAX_BYTES", 1024 * 1024)?,
            },
            ceilings: Ceilings {
                owner: runtime.setting("ROWMILL_OWNER_JOB_CEILING", 20)?,
                job_type: runtime.setting("ROWMILL_TYPE_JOB_CEILING", 100)?,
                system: runtime.setting("ROWMILL_SYSTEM_JOB_CEILING", 200)?,
            },
            header_max_bytes: runtime.setting("ROWMILL_HEADER_MAX_BYTES", 64 * 1024)?,
            default_deadline_seconds: runtime.setting("ROWMILL_DEFAULT_DEADLINE_SECONDS", 14_400)?,
            maximum_deadline_seconds: runtime.setting("ROWMILL_MAXIMUM_DEADLINE_SECONDS", 259_200)?,
            idempotency: Duration::from_secs(idempotency_hours * 60 * 60),
            stale: Duration::from_secs(runtime.setting("ROWMILL_STALE_SECONDS", 900)?),
            retry_after_max: Duration::from_secs(runtime.setting("ROWMILL_RETRY_AFTER_MAX_SECONDS", 300)?),
        },
    })
}
