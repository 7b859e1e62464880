//! Start-up: builds the use case once, then serves messages.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_core::progress::JobSteps;
use rowmill_core::wiring::{Missing, Ports};

use crate::declaration::FUNCTION;
use crate::handler;
use crate::limits::DeadLetterLimits;
use crate::settle::DeadLetters;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let dead_letters = DeadLetters::new(ports, runtime.settings::<DeadLetterLimits>()?)?;
    serve::queue(&runtime, dead_letters, handler::handle).await
}

impl DeadLetters {
    pub fn new(ports: &Ports, limits: DeadLetterLimits) -> Result<Self, Missing> {
        let (jobs, objects, isolated) = (ports.jobs.get()?, ports.objects.get()?, ports.chunks.get()?.isolated.clone());
        let (steps, clock, entropy) = (JobSteps::of(ports)?, ports.clock.get()?, ports.entropy.get()?);
        let (patience, completion_patience) = (limits.recovery.stale, limits.completion_patience());
        let (lease, retention) = (limits.lease(), limits.jobs.retention);
        Ok(Self { jobs, objects, isolated, steps, clock, entropy, patience, completion_patience, lease, retention })
    }
}
