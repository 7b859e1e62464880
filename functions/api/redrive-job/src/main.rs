//! The Lambda function `redrive-job`.

use std::sync::Arc;
use std::time::Duration;

use redrive_job::handler;
use redrive_job::redrive::{RedriveLimits, Redriver};
use rowmill_core::ports::Ceilings;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("redrive-job").await?;
    let redriver = Arc::new(Redriver {
        jobs: runtime.job_store()?,
        uploads: runtime.upload_store()?,
        objects: runtime.objects()?,
        splits: runtime.split_queue()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: RedriveLimits {
            ceilings: Ceilings {
                owner: runtime.setting("ROWMILL_OWNER_JOB_CEILING", 20)?,
                job_type: runtime.setting("ROWMILL_TYPE_JOB_CEILING", 100)?,
                system: runtime.setting("ROWMILL_SYSTEM_JOB_CEILING", 200)?,
            },
            deadline_seconds: runtime.setting("ROWMILL_DEFAULT_DEADLINE_SECONDS", 14_400)?,
            maximum_deadline_seconds: runtime.setting("ROWMILL_MAXIMUM_DEADLINE_SECONDS", 259_200)?,
            stale: Duration::from_secs(runtime.setting("ROWMILL_STALE_SECONDS", 900)?),
            corrected_max_bytes: runtime.setting("ROWMILL_CORRECTED_MAX_BYTES", 5_000_000)?,
            retry_after_max: Duration::from_secs(runtime.setting("ROWMILL_RETRY_AFTER_MAX_SECONDS", 300)?),
        },
    });
    runtime
        .serve_http(move |request| {
            let redriver = Arc::clone(&redriver);
            async move { handler::handle(&redriver, request).await }
        })
        .await
}
