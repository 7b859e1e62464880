//! The Lambda function `process-items`.

use std::sync::Arc;
use std::time::Duration;

use process_items::handler;
use process_items::prepared::PreparedJobs;
use process_items::process::ChunkProcessor;
use process_items::run::RunLimits;
use rowmill_core::job_types::JobTypes;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("process-items").await?;
    let jobs = runtime.job_store()?;
    let processor = Arc::new(ChunkProcessor {
        prepared: PreparedJobs::new(jobs.clone(), JobTypes::built_in(Some(runtime.record_store()?))),
        jobs,
        objects: runtime.objects()?,
        chunks: runtime.items_queue()?,
        isolated: runtime.isolate_queue()?,
        accounts: runtime.accounts()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: RunLimits {
            transient_retries: runtime.setting("ROWMILL_TRANSIENT_RETRIES", 4)?,
            backoff: Duration::from_millis(200),
            margin: Duration::from_secs(runtime.setting("ROWMILL_PROCESS_MARGIN_SECONDS", 5)?),
            poison_max: runtime.setting("ROWMILL_POISON_MAX", 10)?,
        },
    });
    runtime
        .serve_queue(move |batch| {
            let processor = Arc::clone(&processor);
            async move { handler::handle(&processor, batch).await }
        })
        .await
}
