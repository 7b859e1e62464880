//! The Lambda function `complete-job`.

use std::sync::Arc;
use std::time::Duration;

use complete_job::complete::Completer;
use complete_job::handler;

/// How much longer than an invocation a lease lasts.
const LEASE_MARGIN: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("complete-job").await?;
    let timeout = Duration::from_secs(runtime.setting("ROWMILL_COMPLETE_TIMEOUT_SECONDS", 60)?);
    let retention_days: u64 = runtime.setting("ROWMILL_JOB_RETENTION_DAYS", 30)?;
    let completer = Arc::new(Completer {
        jobs: runtime.job_store()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        lease: timeout + LEASE_MARGIN,
        retention: Duration::from_secs(retention_days * 24 * 60 * 60),
    });
    runtime
        .serve_queue(move |batch| {
            let completer = Arc::clone(&completer);
            async move { handler::handle(&completer, batch).await }
        })
        .await
}
