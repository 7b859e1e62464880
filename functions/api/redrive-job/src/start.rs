//! Start-up: builds the use case once, then serves requests.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};

use crate::declaration::FUNCTION;
use crate::handler;
use crate::limits::RedriveLimits;
use crate::redrive::Redriver;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let redriver = Redriver::new(ports, runtime.settings::<RedriveLimits>()?)?;
    serve::api(&runtime, redriver, handler::handle).await
}

impl Redriver {
    pub fn new(ports: &Ports, limits: RedriveLimits) -> Result<Self, Missing> {
        let (jobs, uploads, objects) = (ports.jobs.get()?, ports.uploads.get()?, ports.objects.get()?);
        let (splits, clock, entropy) = (ports.splits.get()?, ports.clock.get()?, ports.entropy.get()?);
        let type_limits = ports.type_limits.get()?;
        Ok(Self { jobs, uploads, objects, splits, clock, entropy, limits, type_limits })
    }
}
