//! Start-up: reads the settings and builds the adapters once, then serves messages.

use std::sync::Arc;

use rowmill_settings::SettingsGroup;

use crate::handler;
use crate::limits::DeadLetterLimits;
use crate::settle::DeadLetters;

/// Runs `dead-letter`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("dead-letter").await?;
    let limits = DeadLetterLimits::from_env()?;
    let dead_letters = Arc::new(DeadLetters {
        jobs: runtime.job_store()?,
        objects: runtime.objects()?,
        isolated: runtime.isolate_queue()?,
        steps: runtime.job_steps()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        patience: limits.recovery.stale,
        completion_patience: limits.completion_patience(),
        lease: limits.lease(),
        retention: limits.jobs.retention,
    });
    runtime
        .serve_queue(move |batch| {
            let dead_letters = Arc::clone(&dead_letters);
            async move { handler::handle(&dead_letters, batch).await }
        })
        .await
}
