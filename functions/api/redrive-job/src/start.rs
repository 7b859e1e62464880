//! Start-up: builds the use case once, then serves requests.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::SettingsGroup;

use crate::NAME;
use crate::handler;
use crate::limits::RedriveLimits;
use crate::redrive::Redriver;

pub async fn start() -> Result<(), BoxError> {
    let ports = rowmill_aws::start(NAME).await?.ports;
    let redriver = Redriver::new(&ports, RedriveLimits::from_env()?)?;
    serve::api(NAME, &ports, redriver, handler::handle).await
}

impl Redriver {
    pub fn new(ports: &Ports, limits: RedriveLimits) -> Result<Self, Missing> {
        let (jobs, uploads, objects) = (ports.jobs.get()?, ports.uploads.get()?, ports.objects.get()?);
        let (splits, clock, entropy) = (ports.splits.get()?, ports.clock.get()?, ports.entropy.get()?);
        let type_limits = ports.type_limits.clone();
        Ok(Self { jobs, uploads, objects, splits, clock, entropy, limits, type_limits })
    }
}
