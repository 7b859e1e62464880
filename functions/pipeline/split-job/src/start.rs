//! Start-up: builds the use case once, then serves messages.

use create_job::create::Creator;
use rowmill_aws::host::serve;
use rowmill_core::job_types::JobTypes;
use rowmill_core::ports::BoxError;
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::commit::resend::ChunkResender;
use rowmill_core::wiring::{Missing, Ports};

use crate::declaration::FUNCTION;
use crate::handler;
use crate::limits::SplitLimits;
use crate::split::Splitter;

/// Runs `split-job` with these job types, which it needs for jobs that wait for their file. A binary with its own job
/// types passes them here.
pub async fn start(job_types: JobTypes) -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let creator = create_job::start::creator(&runtime, job_types)?;
    let splitter = Splitter::new(&runtime.ports, runtime.settings::<SplitLimits>()?, creator)?;
    serve::queue(&runtime, splitter, handler::handle).await
}

impl Splitter {
    pub fn new(ports: &Ports, limits: SplitLimits, creator: Creator) -> Result<Self, Missing> {
        let (jobs, objects, records) = (ports.jobs.get()?, ports.objects.get()?, ports.records.get()?);
        let (chunks, splits) = (ports.chunks.get()?.items.clone(), ports.splits.get()?);
        let (resender, steps) = (ChunkResender::of(ports)?, JobSteps::of(ports)?);
        let (clock, entropy) = (ports.clock.get()?, ports.entropy.get()?);
        Ok(Self { jobs, objects, records, chunks, splits, creator, resender, steps, clock, entropy, limits })
    }
}
