//! The Lambda function `complete-job`.

use std::sync::Arc;
use std::time::Duration;

use complete_job::complete::Completer;
use complete_job::compose::Composer;
use complete_job::compose::writer::PART_BYTES;
use complete_job::handler;
use rowmill_formats::Limits;

/// How much longer than an invocation a lease lasts.
const LEASE_MARGIN: Duration = Duration::from_secs(20);

/// Which share of an invocation is left for what comes after composing: the end of the job, or the handover.
const MARGIN_SHARE: u32 = 4;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("complete-job").await?;
    let timeout = Duration::from_secs(runtime.setting("ROWMILL_COMPLETE_TIMEOUT_SECONDS", 60)?);
    let (jobs, objects) = (runtime.job_store()?, runtime.objects()?);
    let packed = Limits::default();
    let retention_days: u64 = runtime.setting("ROWMILL_JOB_RETENTION_DAYS", 30)?;
    let completer = Arc::new(Completer {
        composer: Composer {
            jobs: jobs.clone(),
            objects: objects.clone(),
            multipart: objects,
            clock: runtime.clock(),
            unprocessed_max_bytes: runtime.setting("ROWMILL_UNPROCESSED_MAX_BYTES", 1024 * 1024 * 1024)?,
            part_bytes: PART_BYTES,
            packed: Limits {
                expanded_max_bytes: runtime.setting("ROWMILL_EXPANDED_MAX_BYTES", packed.expanded_max_bytes)?,
                ratio_max: runtime.setting("ROWMILL_EXPANSION_RATIO_MAX", packed.ratio_max)?,
                xlsx_cells_max: runtime.setting("ROWMILL_SHEET_CELLS_MAX", packed.xlsx_cells_max)?,
                ..packed
            },
        },
        jobs,
        completions: runtime.completions_queue()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        margin: timeout / MARGIN_SHARE,
        lease: timeout + LEASE_MARGIN,
        retention: Duration::from_secs(retention_days * 24 * 60 * 60),
    });
    runtime
        .serve_queue(move |batch| {
            let completer = Arc::clone(&completer);
            async move { handler::handle(&completer, batch).await }
        })
        .await
}
