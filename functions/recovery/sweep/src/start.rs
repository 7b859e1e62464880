//! Start-up: builds the use cases once, then serves the ticks of the schedule.

use rowmill_aws::host::serve;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::ports::BoxError;
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::breaker::BreakerSteps;
use rowmill_core::progress::commit::resend::ChunkResender;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::JobTargets;
use rowmill_targets::Targets;

use crate::census::TaskCensus;
use crate::declaration::FUNCTION;
use crate::handler::{self, Ticks};
use crate::limits::SweepLimits;
use crate::sweep::Sweeper;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let sweeper = Sweeper::new(ports, runtime.settings::<SweepLimits>()?, runtime.settings::<BreakerLimits>()?)?;
    let targets = Targets::parse(&runtime.settings::<JobTargets>()?.json, &JobTypes::built_in(None).names())?;
    let by_workers = targets.types().into_iter().filter(|job_type| job_type.tasks().is_some());
    let census = TaskCensus::new(ports, by_workers.map(|job_type| job_type.name().to_owned()).collect())?;
    serve::schedule(&runtime, Ticks { sweeper, census }, handler::handle).await
}

impl TaskCensus {
    pub fn new(ports: &Ports, job_types: Vec<String>) -> Result<Self, Missing> {
        Ok(Self { jobs: ports.jobs.get()?, tasks: ports.tasks.get()?, clock: ports.clock.get()?, job_types })
    }
}

impl Sweeper {
    pub fn new(ports: &Ports, limits: SweepLimits, breaker: BreakerLimits) -> Result<Self, Missing> {
        let (jobs, splits, queues) = (ports.jobs.get()?, ports.splits.get()?, ports.chunks.get()?);
        let (chunks, isolated) = (queues.items.clone(), queues.isolated.clone());
        let (resender, steps) = (ChunkResender::of(ports)?, JobSteps::of(ports)?);
        let (tasks, type_limits) = (ports.tasks.get()?, ports.type_limits.get()?);
        let (breaker, clock, entropy) = (BreakerSteps::of(ports, breaker)?, ports.clock.get()?, ports.entropy.get()?);
        Ok(Self {
            jobs,
            splits,
            chunks,
            isolated,
            tasks,
            type_limits,
            resender,
            steps,
            breaker,
            clock,
            entropy,
            limits,
        })
    }
}
