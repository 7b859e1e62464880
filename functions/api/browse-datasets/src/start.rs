//! Start-up: builds the use cases once, then serves requests.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};

use crate::declaration::FUNCTION;
use crate::handler;
use crate::records::Datasets;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let datasets = Datasets::new(&runtime.ports)?;
    serve::api(&runtime, datasets, handler::handle).await
}

impl Datasets {
    pub fn new(ports: &Ports) -> Result<Self, Missing> {
        Ok(Self { records: ports.records.get()? })
    }
}
