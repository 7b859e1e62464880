//! Start-up: builds the use case once, then serves chunks.

use std::sync::Arc;

use futures::future::{FutureExt, LocalBoxFuture};
use rowmill_aws::Runtime;
use rowmill_aws::host::batch_threads::BatchThreads;
use rowmill_aws::host::serve;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::ports::{BoxError, RecordStore};
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::breaker::BreakerSteps;
use rowmill_core::wiring::{Missing, Port, Ports};
use rowmill_settings::{JobTargets, Links};
use rowmill_targets::signature::WebhookSecrets;
use rowmill_targets::{Connections, Targets};

use crate::declaration::FUNCTION;
use crate::handler;
use crate::lane::LaneHold;
use crate::limits::RunLimits;
use crate::open_chunk::ChunkPorts;
use crate::prepared::PreparedJobs;
use crate::process::ChunkProcessor;
use crate::reports::RunReports;
use crate::run::Runs;

/// Runs `process-items`. `job_types` builds the job types over the records table; those of [`JobTargets`] are added. A
/// binary with its own job types builds them here. Boxed, so that the function is compiled in this crate, and not in each
/// binary that starts it.
pub fn start(
    job_types: impl FnOnce(Arc<dyn RecordStore>) -> JobTypes + 'static,
) -> LocalBoxFuture<'static, Result<(), BoxError>> {
    boxed(Box::new(job_types))
}

/// What builds the job types.
type Build = Box<dyn FnOnce(Arc<dyn RecordStore>) -> JobTypes>;

fn boxed(job_types: Build) -> LocalBoxFuture<'static, Result<(), BoxError>> {
    run(job_types).boxed_local()
}

async fn run(job_types: Build) -> Result<(), BoxError> {
    let mut runtime = rowmill_aws::start(&FUNCTION).await?;
    let limits = runtime.settings::<RunLimits>()?;
    runtime.ports.batches = Port::given(Arc::new(BatchThreads::new(limits.item_timeout)));
    let job_types = with_targets(job_types(runtime.ports.records.get()?), &runtime).await?;
    // create-job refuses to start then. The chunks of the jobs that are there go on.
    if let Err(error) = runtime.ports.type_limits.get()?.check_known(&job_types.names()) {
        tracing::error!(error = &error as &dyn std::error::Error, "a limit that limits nothing");
    }
    let (breaker, links) = (runtime.settings::<BreakerLimits>()?, runtime.settings::<Links>()?);
    let processor = ChunkProcessor::new(&runtime.ports, job_types, limits, breaker, links)?;
    serve::queue(&runtime, processor, handler::handle).await
}

impl ChunkProcessor {
    pub fn new(
        ports: &Ports,
        job_types: JobTypes,
        limits: RunLimits,
        breaker: BreakerLimits,
        links: Links,
    ) -> Result<Self, Missing> {
        let (jobs, objects, batches) = (ports.jobs.get()?, ports.objects.get()?, ports.batches.get()?);
        let (queues, clock, entropy) = (ports.chunks.get()?, ports.clock.get()?, ports.entropy.get()?);
        let (chunks, isolated) = (queues.items.clone(), queues.isolated.clone());
        let (tasks, transfers, link_expiry) = (ports.tasks.get()?, ports.transfers.get()?, links.expiry);
        let prepared = PreparedJobs::new(jobs.clone(), ports.objects.get()?, job_types, Arc::clone(&batches));
        Ok(Self {
            lane: LaneHold { deliveries: ports.lane_deliveries.get()?, clock: clock.clone() },
            ports: ChunkPorts { jobs, objects, chunks, isolated, tasks, transfers, link_expiry, clock, entropy },
            committer: JobSteps::of(ports)?.committer,
            runs: Runs { prepared, batches, limits, type_limits: ports.type_limits.get()? },
            reports: RunReports::new(BreakerSteps::of(ports, breaker)?),
        })
    }
}

/// Adds the job types of [`JobTargets`].
async fn with_targets(job_types: JobTypes, runtime: &Runtime) -> Result<JobTypes, BoxError> {
    let targets = Targets::parse(&runtime.settings::<JobTargets>()?.json, &job_types.names())?;
    let secrets = if targets.have_webhooks() { Some(webhook_secrets(runtime).await?) } else { None };
    let function = |arn: &str, timeout| runtime.function_target(arn, timeout);
    let table = |name: &str| runtime.item_table(name);
    let clock = runtime.ports.clock.get()?;
    let types = targets.connected_types(&Connections::new(&function, &table, secrets, clock))?;
    Ok(job_types.with(types))
}

async fn webhook_secrets(runtime: &Runtime) -> Result<WebhookSecrets, BoxError> {
    let values = runtime.webhook_secret()?.read().await?;
    let previous = values.previous.as_ref().map(|secret| secret.0.as_str());
    Ok(WebhookSecrets::new(&values.current.0, previous)?)
}
