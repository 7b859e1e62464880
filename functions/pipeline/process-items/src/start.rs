//! Start-up: reads the settings and builds the adapters once, then serves chunks.

use std::sync::Arc;

use rowmill_aws::Runtime;
use rowmill_aws::settings::{JobTargets, SettingsGroup, Webhooks};
use rowmill_core::job_types::JobTypes;
use rowmill_core::ports::RecordStore;
use rowmill_targets::{Connections, Targets};

use crate::handler;
use crate::limits::RunLimits;
use crate::prepared::PreparedJobs;
use crate::process::ChunkProcessor;

/// Runs `process-items`. `job_types` builds the job types over the records table; those of [`JobTargets`] are added. A
/// binary with its own job types builds them here.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start(job_types: impl FnOnce(Arc<dyn RecordStore>) -> JobTypes) -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("process-items").await?;
    let jobs = runtime.job_store()?;
    let job_types = with_targets(job_types(runtime.record_store()?), &runtime)?;
    let limits = RunLimits::from_env()?;
    let processor = Arc::new(ChunkProcessor {
        batches: runtime.batch_runner(limits.item_timeout),
        prepared: PreparedJobs::new(jobs.clone(), job_types),
        jobs,
        objects: runtime.objects()?,
        chunks: runtime.items_queue()?,
        isolated: runtime.isolate_queue()?,
        steps: runtime.job_steps()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits,
    });
    runtime
        .serve_queue(move |batch| {
            let processor = Arc::clone(&processor);
            async move { handler::handle(&processor, batch).await }
        })
        .await
}

/// Adds the job types of [`JobTargets`].
fn with_targets(job_types: JobTypes, runtime: &Runtime) -> Result<JobTypes, lambda_runtime::Error> {
    let targets = Targets::parse(&JobTargets::from_env()?.json, &job_types.names())?;
    let webhooks = Webhooks::from_env()?;
    let function = |arn: &str, timeout| runtime.function_target(arn, timeout);
    let types = targets.connected_types(&Connections::new(&function, &webhooks.secret.0, runtime.clock()))?;
    Ok(job_types.with(types))
}
