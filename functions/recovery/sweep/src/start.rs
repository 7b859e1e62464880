//! Start-up: builds the use case once, then serves the ticks of the schedule.

use rowmill_aws::host::serve;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::ports::BoxError;
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::breaker::BreakerSteps;
use rowmill_core::progress::commit::resend::ChunkResender;
use rowmill_core::wiring::{Missing, Ports};

use crate::declaration::FUNCTION;
use crate::handler;
use crate::limits::SweepLimits;
use crate::sweep::Sweeper;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let sweeper = Sweeper::new(ports, runtime.settings::<SweepLimits>()?, runtime.settings::<BreakerLimits>()?)?;
    serve::schedule(&runtime, sweeper, handler::handle).await
}

impl Sweeper {
    pub fn new(ports: &Ports, limits: SweepLimits, breaker: BreakerLimits) -> Result<Self, Missing> {
        let (jobs, splits, queues) = (ports.jobs.get()?, ports.splits.get()?, ports.chunks.get()?);
        let (chunks, isolated) = (queues.items.clone(), queues.isolated.clone());
        let (resender, steps) = (ChunkResender::of(ports)?, JobSteps::of(ports)?);
        let tasks = ports.tasks.get()?;
        let (breaker, clock, entropy) = (BreakerSteps::of(ports, breaker)?, ports.clock.get()?, ports.entropy.get()?);
        Ok(Self { jobs, splits, chunks, isolated, tasks, resender, steps, breaker, clock, entropy, limits })
    }
}
