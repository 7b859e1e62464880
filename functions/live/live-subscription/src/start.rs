//! Start-up: builds the use case once, then serves messages.

use rowmill_api::job::JobReader;
use rowmill_aws::host::live_events;
use rowmill_core::callers::blocked::BlockCheck;
use rowmill_core::ports::BoxError;
use rowmill_core::sending::live_sender::LiveSender;
use rowmill_settings::ConnectionLimits;

use crate::declaration::FUNCTION;
use crate::handler;
use crate::messages::{MessageBounds, MessageLimits};
use crate::subscribe::{SUBSCRIPTIONS_MAX, Subscriber};

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let (connections, clock) = (ports.connections.get()?, ports.clock.get()?);
    let sender = runtime.connection_sender()?;
    let limits = MessageLimits::of(SUBSCRIPTIONS_MAX, runtime.settings::<ConnectionLimits>()?.per_owner);
    let subscriber = Subscriber {
        reader: JobReader { jobs: ports.jobs.get()?, clock: clock.clone() },
        sender: LiveSender { connections: connections.clone(), sender, clock: clock.clone() },
        connections,
        blocked: BlockCheck::new(ports.blocks.get()?, clock.clone()),
        messages: MessageBounds::new(ports.request_counts.get()?, ports.entropy.get()?, limits),
        subscriptions: ports.subscriptions.get()?,
        clock,
        per_connection: SUBSCRIPTIONS_MAX,
    };
    live_events::live(&runtime, subscriber, handler::handle).await
}
