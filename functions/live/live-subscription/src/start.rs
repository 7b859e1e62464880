//! Start-up: builds the use case once, then serves messages.

use rowmill_api::job::JobReader;
use rowmill_aws::host::live_events;
use rowmill_core::ports::BoxError;
use rowmill_core::sending::live_sender::LiveSender;
use rowmill_settings::{SettingsGroup, SubscriptionLimits};

use crate::handler;
use crate::subscribe::Subscriber;

const NAME: &str = "live-subscription";

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(NAME).await?;
    let ports = &runtime.ports;
    let (connections, clock) = (ports.connections.get()?, ports.clock.get()?);
    let sender = runtime.connection_sender()?;
    let subscriber = Subscriber {
        reader: JobReader { jobs: ports.jobs.get()?, clock: clock.clone() },
        sender: LiveSender { connections: connections.clone(), sender, clock: clock.clone() },
        connections,
        subscriptions: ports.subscriptions.get()?,
        clock,
        per_connection: SubscriptionLimits::from_env()?.per_connection,
    };
    live_events::live(NAME, subscriber, handler::handle).await
}
