//! The Lambda function `sweep`.

use std::sync::Arc;
use std::time::Duration;

use sweep::handler;
use sweep::sweep::{SweepLimits, Sweeper};

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("sweep").await?;
    let timeout = Duration::from_secs(runtime.setting("ROWMILL_SWEEP_TIMEOUT_SECONDS", 60)?);
    let sweeper = Arc::new(Sweeper {
        jobs: runtime.job_store()?,
        objects: runtime.objects()?,
        splits: runtime.split_queue()?,
        chunks: runtime.items_queue()?,
        isolated: runtime.isolate_queue()?,
        steps: runtime.job_steps()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: SweepLimits {
            stale: Duration::from_secs(runtime.setting("ROWMILL_STALE_SECONDS", 900)?),
            grace: Duration::from_secs(runtime.setting("ROWMILL_STOP_GRACE_SECONDS", 120)?),
            jobs_max: runtime.setting("ROWMILL_SWEEP_JOBS_MAX", 100)?,
            time: timeout * 3 / 4,
            tallies_max: runtime.setting("ROWMILL_SWEEP_TALLIES_MAX", 4)?,
            backoff_max: Duration::from_secs(runtime.setting("ROWMILL_SWEEP_BACKOFF_MAX_SECONDS", 14_400)?),
        },
    });
    runtime
        .serve_schedule(move || {
            let sweeper = Arc::clone(&sweeper);
            async move { handler::handle(&sweeper).await }
        })
        .await
}
