//! Start-up: builds the use case once, then serves messages.

use create_job::create::Creator;
use rowmill_aws::host::serve;
use rowmill_core::job_types::JobTypes;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};

use crate::declaration::FUNCTION;
use crate::handler;
use crate::starter::Starter;

/// Runs `start-job` with these job types. A binary with its own job types passes them here.
pub async fn start(job_types: JobTypes) -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let creator = create_job::start::creator(&runtime, job_types)?;
    let starter = Starter::new(&runtime.ports, creator)?;
    serve::queue(&runtime, starter, handler::handle).await
}

impl Starter {
    pub fn new(ports: &Ports, creator: Creator) -> Result<Self, Missing> {
        Ok(Self { jobs: ports.jobs.get()?, splits: ports.splits.get()?, clock: ports.clock.get()?, creator })
    }
}
