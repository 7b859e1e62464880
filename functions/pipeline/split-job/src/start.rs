//! Start-up: reads the settings and builds the adapters once, then serves messages.

use std::sync::Arc;

use rowmill_settings::SettingsGroup;

use crate::handler;
use crate::limits::SplitLimits;
use crate::split::Splitter;

/// Runs `split-job`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("split-job").await?;
    let splitter = Arc::new(Splitter {
        jobs: runtime.job_store()?,
        objects: runtime.objects()?,
        records: runtime.record_store()?,
        chunks: runtime.items_queues()?,
        splits: runtime.split_queue()?,
        resender: runtime.resender()?,
        steps: runtime.job_steps()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: SplitLimits::from_env()?,
    });
    runtime
        .serve_queue(move |batch| {
            let splitter = Arc::clone(&splitter);
            async move { handler::handle(&splitter, batch).await }
        })
        .await
}
