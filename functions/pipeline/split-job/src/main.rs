//! The Lambda function `split-job`.

use std::sync::Arc;
use std::time::Duration;

use rowmill_formats::Limits;
use split_job::handler;
use split_job::split::{SplitLimits, Splitter};

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("split-job").await?;
    let margin = Duration::from_secs(runtime.setting("ROWMILL_SPLIT_MARGIN_SECONDS", 20)?);
    let timeout = Duration::from_secs(runtime.setting("ROWMILL_SPLIT_TIMEOUT_SECONDS", 300)?);
    let packed = Limits::default();
    let splitter = Arc::new(Splitter {
        jobs: runtime.job_store()?,
        objects: runtime.objects()?,
        records: runtime.record_store()?,
        chunks: runtime.items_queue()?,
        splits: runtime.split_queue()?,
        steps: runtime.job_steps()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: SplitLimits {
            range_bytes: runtime.setting("ROWMILL_SPLIT_RANGE_BYTES", 4 * 1024 * 1024)?,
            packed: Limits {
                expanded_max_bytes: runtime.setting("ROWMILL_EXPANDED_MAX_BYTES", packed.expanded_max_bytes)?,
                ratio_max: runtime.setting("ROWMILL_EXPANSION_RATIO_MAX", packed.ratio_max)?,
                xlsx_cells_max: runtime.setting("ROWMILL_SHEET_CELLS_MAX", packed.xlsx_cells_max)?,
                ..packed
            },
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
