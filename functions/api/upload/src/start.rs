//! Start-up: reads the settings and builds the adapters once, then serves requests.

use std::sync::Arc;

use rowmill_settings::SettingsGroup;

use crate::handler;
use crate::limits::UploadLimits;
use crate::upload::Uploads;

/// Runs `upload`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start(crate::NAME).await?;
    let objects = runtime.objects()?;
    let uploads = Arc::new(Uploads {
        uploads: runtime.upload_store()?,
        objects: objects.clone(),
        transfers: objects.clone(),
        multipart: objects,
        outstanding: runtime.outstanding_uploads()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: UploadLimits::from_env()?,
    });
    runtime
        .serve_api(move |call| {
            let uploads = Arc::clone(&uploads);
            async move { handler::handle(&uploads, &call).await }
        })
        .await
}
