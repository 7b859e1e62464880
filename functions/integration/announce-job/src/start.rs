//! Start-up: builds the use case once, then serves changes of the jobs table.

use rowmill_aws::host::serve;
use rowmill_core::ports::BoxError;
use rowmill_core::progress::waits::Waker;

use crate::announce::Announcer;
use crate::declaration::FUNCTION;
use crate::handler;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let announcer = Announcer { events: ports.events.get()?, waker: Waker::of(ports)? };
    serve::stream(&runtime, announcer, handler::handle).await
}
