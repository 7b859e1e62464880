//! Start-up: builds the use case once, then serves requests.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::{BUCKET, BucketSettings, FetchSettings, OtherBuckets};
use rowmill_targets::sources::FetchHosts;

use crate::declaration::FUNCTION;
use crate::fetched::FetchOrders;
use crate::handler::{self, UploadRoutes};
use crate::limits::UploadLimits;
use crate::upload::Uploads;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let uploads = Uploads::new(ports, runtime.settings::<UploadLimits>()?)?;
    let hosts = FetchHosts::parse(&runtime.settings::<FetchSettings>()?.hosts)?;
    let OtherBuckets { inputs, .. } = OtherBuckets::of(runtime.settings::<BucketSettings>()?, &BUCKET.read()?);
    let routes = UploadRoutes { uploads, orders: FetchOrders { hosts, inputs, fetches: ports.fetches.get()? } };
    serve::api(&runtime, routes, handler::handle).await
}

impl Uploads {
    pub fn new(ports: &Ports, limits: UploadLimits) -> Result<Self, Missing> {
        let (objects, transfers, multipart) = (ports.objects.get()?, ports.transfers.get()?, ports.multipart.get()?);
        let (erasures, uploads, outstanding) = (ports.erasures.get()?, ports.uploads.get()?, ports.outstanding.get()?);
        let (clock, entropy) = (ports.clock.get()?, ports.entropy.get()?);
        Ok(Self { uploads, objects, transfers, multipart, erasures, outstanding, clock, entropy, limits })
    }
}
