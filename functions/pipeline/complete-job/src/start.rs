//! Start-up: builds the use case once, then serves messages.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};

use crate::complete::Completer;
use crate::compose::Composer;
use crate::copy::Copier;
use crate::declaration::FUNCTION;
use crate::handler;
use crate::limits::CompleteLimits;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let completer = Completer::new(ports, runtime.settings::<CompleteLimits>()?)?;
    serve::queue(&runtime, completer, handler::handle).await
}

impl Completer {
    pub fn new(ports: &Ports, limits: CompleteLimits) -> Result<Self, Missing> {
        let (jobs, objects, multipart) = (ports.jobs.get()?, ports.objects.get()?, ports.multipart.get()?);
        let (clock, entropy, completions) = (ports.clock.get()?, ports.entropy.get()?, ports.completions.get()?);
        let copier = Copier {
            objects: objects.clone(),
            multipart: multipart.clone(),
            clock: clock.clone(),
            part_bytes: limits.part_bytes,
        };
        let composer = Composer {
            jobs: jobs.clone(),
            objects,
            multipart,
            clock: clock.clone(),
            unprocessed_max_bytes: limits.unprocessed_max_bytes,
            part_bytes: limits.part_bytes,
            packed: limits.packed.into(),
        };
        Ok(Self { jobs, clock, entropy, composer, copier, completions, limits })
    }
}
