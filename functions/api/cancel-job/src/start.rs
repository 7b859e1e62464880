//! Start-up: builds the use cases once, then serves requests.

use rowmill_aws::host::serve;
use rowmill_core::model::owner_priorities::OwnerPriorities;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::{Deadlines, JobRetention, OwnerPrioritySettings, Recovery};

use crate::change::Changer;
use crate::declaration::FUNCTION;
use crate::handler;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let changer = Changer::new(
        &runtime.ports,
        runtime.settings::<JobRetention>()?,
        runtime.settings::<Deadlines>()?,
        runtime.settings::<Recovery>()?,
        runtime.settings::<OwnerPrioritySettings>()?.priorities()?,
    )?;
    serve::api(&runtime, changer, handler::handle).await
}

impl Changer {
    pub fn new(
        ports: &Ports,
        jobs: JobRetention,
        deadlines: Deadlines,
        recovery: Recovery,
        owner_priorities: OwnerPriorities,
    ) -> Result<Self, Missing> {
        Ok(Self {
            jobs: ports.jobs.get()?,
            splits: ports.splits.get()?,
            clock: ports.clock.get()?,
            retention: jobs.retention,
            deadline_max: deadlines.maximum_seconds,
            owner_priorities,
            silent: recovery.silence(),
        })
    }
}
