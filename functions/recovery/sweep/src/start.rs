//! Start-up: reads the settings and builds the adapters once, then serves the ticks of the schedule.

use std::sync::Arc;

use rowmill_core::model::breaker::BreakerLimits;
use rowmill_settings::SettingsGroup;

use crate::handler;
use crate::limits::SweepLimits;
use crate::sweep::Sweeper;

/// Runs `sweep`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("sweep").await?;
    let sweeper = Arc::new(Sweeper {
        jobs: runtime.job_store()?,
        splits: runtime.split_queue()?,
        chunks: runtime.items_queues()?,
        isolated: runtime.isolate_queue()?,
        resender: runtime.resender()?,
        steps: runtime.job_steps()?,
        breaker: runtime.breaker(BreakerLimits::from_env()?)?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: SweepLimits::from_env()?,
    });
    runtime
        .serve_schedule(move || {
            let sweeper = Arc::clone(&sweeper);
            async move { handler::handle(&sweeper).await }
        })
        .await
}
