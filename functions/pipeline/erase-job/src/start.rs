//! Start-up: builds the use case once, then serves the ticks of the schedule.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::Recovery;

use crate::declaration::FUNCTION;
use crate::erase::{EraseLimits, Eraser};
use crate::handler;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let eraser = Eraser::new(&runtime.ports, runtime.settings::<Recovery>()?)?;
    serve::schedule(&runtime, eraser, handler::handle).await
}

impl Eraser {
    pub fn new(ports: &Ports, recovery: Recovery) -> Result<Self, Missing> {
        let (jobs, objects, clock) = (ports.jobs.get()?, ports.erasures.get()?, ports.clock.get()?);
        Ok(Self { jobs, objects, clock, limits: EraseLimits::of(recovery.silence()) })
    }
}
