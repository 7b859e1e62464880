//! Start-up: reads the settings and builds the adapters once, then serves requests.

use std::sync::Arc;

use rowmill_settings::SettingsGroup;

use crate::handler;
use crate::limits::RedriveLimits;
use crate::redrive::Redriver;

/// Runs `redrive-job`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start(crate::NAME).await?;
    let redriver = Arc::new(Redriver {
        jobs: runtime.job_store()?,
        uploads: runtime.upload_store()?,
        objects: runtime.objects()?,
        splits: runtime.split_queue()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: RedriveLimits::from_env()?,
        type_limits: runtime.type_limits()?,
    });
    runtime
        .serve_api(move |call| {
            let redriver = Arc::clone(&redriver);
            async move { handler::handle(&redriver, &call).await }
        })
        .await
}
