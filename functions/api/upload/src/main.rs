//! The Lambda function `upload`.

use std::sync::Arc;
use std::time::Duration;

use upload::handler;
use upload::upload::{UploadLimits, Uploads};

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("upload").await?;
    let retention_days: u64 = runtime.setting("ROWMILL_UPLOAD_RETENTION_DAYS", 7)?;
    let objects = runtime.objects()?;
    let uploads = Arc::new(Uploads {
        uploads: runtime.upload_store()?,
        objects: objects.clone(),
        transfers: objects.clone(),
        multipart: objects,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: UploadLimits {
            direct_max_bytes: runtime.setting("ROWMILL_DIRECT_UPLOAD_MAX_BYTES", 5_000_000)?,
            single_put_max_bytes: runtime.setting("ROWMILL_SINGLE_PUT_MAX_BYTES", 64 * 1024 * 1024)?,
            part_bytes: runtime.setting("ROWMILL_MULTIPART_PART_BYTES", 16 * 1024 * 1024)?,
            max_bytes: runtime.setting("ROWMILL_UPLOAD_MAX_BYTES", 100 * 1024 * 1024 * 1024)?,
            retention: Duration::from_secs(retention_days * 24 * 60 * 60),
            presign_expiry: Duration::from_secs(runtime.setting("ROWMILL_PRESIGN_EXPIRY_SECONDS", 3600)?),
        },
    });
    runtime
        .serve_http(move |request| {
            let uploads = Arc::clone(&uploads);
            async move { handler::handle(&uploads, request).await }
        })
        .await
}
