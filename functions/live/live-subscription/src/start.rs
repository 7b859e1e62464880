//! Start-up: builds the use case once, then serves messages.

use rowmill_api::job::JobReader;
use rowmill_aws::host::live_events;
use rowmill_core::ports::BoxError;
use rowmill_core::sending::live_sender::LiveSender;

use crate::declaration::FUNCTION;
use crate::handler;
use crate::subscribe::{SUBSCRIPTIONS_MAX, Subscriber};

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let (connections, clock) = (ports.connections.get()?, ports.clock.get()?);
    let sender = runtime.connection_sender()?;
    let subscriber = Subscriber {
        reader: JobReader { jobs: ports.jobs.get()?, clock: clock.clone() },
        sender: LiveSender { connections: connections.clone(), sender, clock: clock.clone() },
        connections,
        subscriptions: ports.subscriptions.get()?,
        clock,
        per_connection: SUBSCRIPTIONS_MAX,
    };
    live_events::live(&runtime, subscriber, handler::handle).await
}
