//! Start-up: builds the use cases once, then serves requests.

use rowmill_aws::host::serve;
use rowmill_core::model::owner_priorities::OwnerPriorities;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::{Deadlines, JobRetention, OwnerPrioritySettings, Recovery};

use crate::cancel::Canceller;
use crate::declaration::FUNCTION;
use crate::delete::Deleter;
use crate::handler::{self, UseCases};
use crate::pause::Pauser;
use crate::retune::Retuner;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let jobs = runtime.settings::<JobRetention>()?;
    let priorities = runtime.settings::<OwnerPrioritySettings>()?.priorities()?;
    let use_cases = UseCases {
        canceller: Canceller::new(ports, jobs)?,
        pauser: Pauser::new(ports)?,
        retuner: Retuner::new(ports, runtime.settings::<Deadlines>()?, jobs, priorities)?,
        deleter: Deleter::new(ports, runtime.settings::<Recovery>()?)?,
    };
    serve::api(&runtime, use_cases, handler::handle).await
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

impl Retuner {
    pub fn new(
        ports: &Ports,
        deadlines: Deadlines,
        jobs: JobRetention,
        owner_priorities: OwnerPriorities,
    ) -> Result<Self, Missing> {
        let (deadline_max, retention) = (deadlines.maximum_seconds, jobs.retention);
        Ok(Self { pauser: Pauser::new(ports)?, deadline_max, retention, owner_priorities })
    }
}

impl Deleter {
    pub fn new(ports: &Ports, recovery: Recovery) -> Result<Self, Missing> {
        Ok(Self { jobs: ports.jobs.get()?, clock: ports.clock.get()?, silent: recovery.silence() })
    }
}
