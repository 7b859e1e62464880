//! Start-up: builds the adapters once, then serves connections.

use std::sync::Arc;

use rowmill_settings::{ConnectionLimits, SettingsGroup};

use crate::connect::Doorkeeper;
use crate::handler;

/// Runs `live-connection`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("live-connection").await?;
    let (live, limits) = (runtime.live_store()?, ConnectionLimits::from_env()?);
    let door = Arc::new(Doorkeeper {
        tickets: live.clone(),
        connections: live,
        clock: runtime.clock(),
        per_owner: limits.per_owner,
    });
    runtime
        .serve_live(move |event| {
            let door = Arc::clone(&door);
            async move { handler::handle(&door, event).await }
        })
        .await
}
