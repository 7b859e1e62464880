//! Start-up: builds the adapters once, then serves connections.

use std::sync::Arc;

use crate::connect::Doorkeeper;
use crate::handler;

/// Runs `live-connection`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("live-connection").await?;
    let live = runtime.live_store()?;
    let door = Arc::new(Doorkeeper { tickets: live.clone(), connections: live, clock: runtime.clock() });
    runtime
        .serve_live(move |event| {
            let door = Arc::clone(&door);
            async move { handler::handle(&door, event).await }
        })
        .await
}
