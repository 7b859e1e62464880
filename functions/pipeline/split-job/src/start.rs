//! Start-up: builds the use case once, then serves messages.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::commit::resend::ChunkResender;
use rowmill_core::wiring::{Missing, Ports};

use crate::declaration::FUNCTION;
use crate::handler;
use crate::limits::SplitLimits;
use crate::split::Splitter;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let splitter = Splitter::new(&runtime.ports, runtime.settings::<SplitLimits>()?)?;
    serve::queue(&runtime, splitter, handler::handle).await
}

impl Splitter {
    pub fn new(ports: &Ports, limits: SplitLimits) -> Result<Self, Missing> {
        let (jobs, objects, records) = (ports.jobs.get()?, ports.objects.get()?, ports.records.get()?);
        let (chunks, splits) = (ports.chunks.get()?.items.clone(), ports.splits.get()?);
        let starts = ports.starts.get()?;
        let (resender, steps) = (ChunkResender::of(ports)?, JobSteps::of(ports)?);
        let (clock, entropy) = (ports.clock.get()?, ports.entropy.get()?);
        Ok(Self { jobs, objects, records, chunks, splits, starts, resender, steps, clock, entropy, limits })
    }
}
