//! Start-up: reads the settings and builds the adapters once, then serves chunks.

use std::sync::Arc;

use rowmill_aws::Runtime;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::ports::RecordStore;
use rowmill_settings::{JobTargets, SettingsGroup};
use rowmill_targets::signature::WebhookSecrets;
use rowmill_targets::{Connections, Targets};

use crate::handler;
use crate::lane::LaneHold;
use crate::limits::RunLimits;
use crate::open_chunk::ChunkPorts;
use crate::prepared::PreparedJobs;
use crate::process::ChunkProcessor;
use crate::reports::RunReports;
use crate::run::Runs;

/// Runs `process-items`. `job_types` builds the job types over the records table; those of [`JobTargets`] are added. A
/// binary with its own job types builds them here.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start(job_types: impl FnOnce(Arc<dyn RecordStore>) -> JobTypes) -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("process-items").await?;
    let jobs = runtime.job_store()?;
    let job_types = with_targets(job_types(runtime.record_store()?), &runtime).await?;
    let (limits, type_limits) = (RunLimits::from_env()?, runtime.type_limits()?);
    // create-job refuses to start then. The chunks of the jobs that are there go on.
    if let Err(error) = type_limits.check_known(&job_types.names()) {
        tracing::error!(error = &error as &dyn std::error::Error, "a limit that limits nothing");
    }
    let batches = runtime.batch_runner(limits.item_timeout);
    let prepared = PreparedJobs::new(jobs.clone(), job_types, Arc::clone(&batches));
    let processor = Arc::new(ChunkProcessor {
        ports: ChunkPorts {
            jobs,
            objects: runtime.objects()?,
            chunks: runtime.items_queues()?,
            isolated: runtime.isolate_queue()?,
            clock: runtime.clock(),
            entropy: runtime.entropy(),
        },
        committer: runtime.job_steps()?.committer,
        runs: Runs { prepared, batches, limits, type_limits },
        reports: RunReports::new(runtime.breaker(BreakerLimits::from_env()?)?),
        lane: LaneHold { deliveries: runtime.lane_deliveries()?, clock: runtime.clock() },
    });
    runtime
        .serve_queue(move |batch| {
            let processor = Arc::clone(&processor);
            async move { handler::handle(&processor, batch).await }
        })
        .await
}

/// Adds the job types of [`JobTargets`].
async fn with_targets(job_types: JobTypes, runtime: &Runtime) -> Result<JobTypes, lambda_runtime::Error> {
    let targets = Targets::parse(&JobTargets::from_env()?.json, &job_types.names())?;
    let secrets = if targets.have_webhooks() { Some(webhook_secrets(runtime).await?) } else { None };
    let function = |arn: &str, timeout| runtime.function_target(arn, timeout);
    let types = targets.connected_types(&Connections::new(&function, secrets, runtime.clock()))?;
    Ok(job_types.with(types))
}

async fn webhook_secrets(runtime: &Runtime) -> Result<WebhookSecrets, lambda_runtime::Error> {
    let values = runtime.webhook_secret()?.read().await?;
    let previous = values.previous.as_ref().map(|secret| secret.0.as_str());
    Ok(WebhookSecrets::new(&values.current.0, previous)?)
}
