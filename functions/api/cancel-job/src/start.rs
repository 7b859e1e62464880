//! Start-up: builds the use cases once, then serves requests.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::{JobRetention, SettingsGroup};

use crate::NAME;
use crate::cancel::Canceller;
use crate::handler::{self, UseCases};
use crate::pause::Pauser;

pub async fn start() -> Result<(), BoxError> {
    let ports = rowmill_aws::start(NAME).await?.ports;
    let canceller = Canceller::new(&ports, JobRetention::from_env()?)?;
    let use_cases = UseCases { canceller, pauser: Pauser::new(&ports)? };
    serve::api(NAME, &ports, use_cases, handler::handle).await
}

impl Canceller {
    pub fn new(ports: &Ports, jobs: JobRetention) -> Result<Self, Missing> {
        Ok(Self { jobs: ports.jobs.get()?, clock: ports.clock.get()?, retention: jobs.retention })
    }
}

impl Pauser {
    pub fn new(ports: &Ports) -> Result<Self, Missing> {
        Ok(Self { jobs: ports.jobs.get()?, splits: ports.splits.get()?, clock: ports.clock.get()? })
    }
}
