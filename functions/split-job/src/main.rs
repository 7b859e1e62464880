//! The Lambda function `split-job`.

use std::sync::Arc;
use std::time::Duration;

use split_job::handler;
use split_job::split::{SplitLimits, Splitter};

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("split-job").await?;
    let margin = Duration::from_secs(runtime.setting("ROWMILL_SPLIT_MARGIN_SECONDS", 20)?);
    let timeout = Duration::from_secs(runtime.setting("ROWMILL_SPLIT_TIMEOUT_SECONDS", 300)?);
    let splitter = Arc::new(Splitter {
        jobs: runtime.job_store()?,
        objects: runtime.objects()?,
        records: runtime.record_store()?,
        chunks: runtime.items_queue()?,
        splits: runtime.split_queue()?,
        accounts: runtime.accounts()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: SplitLimits {
            range_bytes: runtime.setting("ROWMILL_SPLIT_RANGE_BYTES", 4 * 1024 * 1024)?,
            margin,
            lease: timeout + margin,
        },
    });
    runtime
        .serve_queue(move |batch| {
            let splitter = Arc::clone(&splitter);
            async move { handler::handle(&splitter, batch).await }
        })
        .await
}
