//! Start-up: reads the settings and builds the adapters once, then serves requests.

use std::sync::Arc;

use rowmill_settings::{ConnectionLimits, SettingsGroup};

use crate::handler;
use crate::issue::TicketOffice;

/// Runs `live-ticket`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start(crate::NAME).await?;
    let (live, limits) = (runtime.live_store()?, ConnectionLimits::from_env()?);
    let office = runtime.live_url().map(|url| TicketOffice {
        tickets: live.clone(),
        connections: live,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        url,
        per_owner: limits.per_owner,
    });
    let office = Arc::new(office);
    runtime
        .serve_api(move |call| {
            let office = Arc::clone(&office);
            async move { handler::handle(office.as_ref().as_ref(), &call).await }
        })
        .await
}
