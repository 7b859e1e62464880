//! Start-up: builds the use case once, then serves changes of the jobs table.

use rowmill_api::job::JobReader;
use rowmill_aws::host::serve;
use rowmill_core::callers::blocked::BlockCheck;
use rowmill_core::ports::BoxError;
use rowmill_core::sending::live_sender::LiveSender;

use crate::declaration::FUNCTION;
use crate::handler;
use crate::push::Pusher;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let (connections, clock) = (ports.connections.get()?, ports.clock.get()?);
    let reader = JobReader { jobs: ports.jobs.get()?, clock: clock.clone() };
    let blocked = BlockCheck::new(ports.blocks.get()?, clock.clone());
    let sender = LiveSender { connections, sender: runtime.connection_sender()?, clock };
    let pusher = Pusher::new(reader, ports.subscriptions.get()?, blocked, sender);
    serve::stream(&runtime, pusher, handler::handle).await
}
