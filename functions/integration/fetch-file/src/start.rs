//! Start-up: builds the use case once, then serves messages.

use std::sync::Arc;

use rowmill_aws::host::serve;
use rowmill_core::ports::{BoxError, RemoteFiles};
use rowmill_core::progress::waits::Waker;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::FetchSettings;
use rowmill_targets::lookup::{Lookup, SystemLookup};
use rowmill_targets::sources::{FetchHosts, HttpFiles};
use upload::limits::UploadLimits;
use upload::upload::Uploads;

use crate::declaration::FUNCTION;
use crate::fetch::Fetcher;
use crate::handler::{self, Fetches};
use crate::origins::Origins;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let hosts = FetchHosts::parse(&runtime.settings::<FetchSettings>()?.hosts)?;
    let lookup: Arc<dyn Lookup> = Arc::new(SystemLookup);
    let servers = Arc::new(HttpFiles::new(hosts, &lookup, ports.clock.get()?)?);
    let remote = Arc::new(Origins { servers, objects: ports.objects.get()? });
    let fetcher = Fetcher::new(ports, runtime.settings::<UploadLimits>()?, remote)?;
    let deliveries = ports.fetch_deliveries.get()?;
    serve::queue(&runtime, Fetches { fetcher, deliveries }, handler::handle).await
}

impl Fetcher {
    pub fn new(ports: &Ports, limits: UploadLimits, remote: Arc<dyn RemoteFiles>) -> Result<Self, Missing> {
        let (files, waker) = (Uploads::new(ports, limits)?, Waker::of(ports)?);
        Ok(Self { files, fetches: ports.fetches.get()?, remote, waker })
    }
}
