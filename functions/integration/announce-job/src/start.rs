//! Start-up: builds the use case once, then serves changes of the jobs table.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;

use crate::announce::Announcer;
use crate::handler;

const NAME: &str = "announce-job";

pub async fn start() -> Result<(), BoxError> {
    let ports = rowmill_aws::start(NAME).await?.ports;
    let announcer = Announcer { events: ports.events.get()? };
    serve::stream(NAME, announcer, handler::handle).await
}
