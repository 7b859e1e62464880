//! The Lambda function `dead-letter`.

use std::sync::Arc;
use std::time::Duration;

use dead_letter::handler;
use dead_letter::settle::DeadLetters;

/// How much longer than an invocation a lease lasts.
const LEASE_MARGIN: Duration = Duration::from_secs(20);

/// How many time limits of `complete-job` its queue keeps a message from its next delivery, as the template says.
const COMPLETIONS_VISIBILITY: u32 = 6;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("dead-letter").await?;
    let timeout = Duration::from_secs(runtime.setting("ROWMILL_DEAD_LETTER_TIMEOUT_SECONDS", 60)?);
    let complete_timeout = Duration::from_secs(runtime.setting("ROWMILL_COMPLETE_TIMEOUT_SECONDS", 60)?);
    let retention_days: u64 = runtime.setting("ROWMILL_JOB_RETENTION_DAYS", 30)?;
    let dead_letters = Arc::new(DeadLetters {
        jobs: runtime.job_store()?,
        objects: runtime.objects()?,
        isolated: runtime.isolate_queue()?,
        steps: runtime.job_steps()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        patience: Duration::from_secs(runtime.setting("ROWMILL_STALE_SECONDS", 900)?),
        completion_patience: complete_timeout * COMPLETIONS_VISIBILITY + complete_timeout + LEASE_MARGIN,
        lease: timeout + LEASE_MARGIN,
        retention: Duration::from_secs(retention_days * 24 * 60 * 60),
    });
    runtime
        .serve_queue(move |batch| {
            let dead_letters = Arc::clone(&dead_letters);
            async move { handler::handle(&dead_letters, batch).await }
        })
        .await
}
