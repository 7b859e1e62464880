//! Start-up: reads the settings and builds the adapters once, then serves messages.

use std::sync::Arc;

use rowmill_core::progress::views::job_reader::JobReader;
use rowmill_core::sending::live_sender::LiveSender;
use rowmill_settings::{SettingsGroup, SubscriptionLimits};

use crate::handler;
use crate::subscribe::Subscriber;

/// Runs `live-subscription`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("live-subscription").await?;
    let (live, clock) = (runtime.live_store()?, runtime.clock());
    let subscriber = Arc::new(Subscriber {
        reader: JobReader { jobs: runtime.job_store()?, clock: clock.clone() },
        sender: LiveSender { connections: live.clone(), sender: runtime.connection_sender()?, clock: clock.clone() },
        connections: live.clone(),
        subscriptions: live,
        clock,
        per_connection: SubscriptionLimits::from_env()?.per_connection,
    });
    runtime
        .serve_live(move |event| {
            let subscriber = Arc::clone(&subscriber);
            async move { handler::handle(&subscriber, event).await }
        })
        .await
}
