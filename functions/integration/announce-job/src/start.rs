//! Start-up: builds the adapters once, then serves changes of the jobs table.

use std::sync::Arc;

use crate::announce::Announcer;
use crate::handler;

/// Runs `announce-job`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("announce-job").await?;
    let announcer = Arc::new(Announcer { events: runtime.events()? });
    runtime
        .serve_stream(move |changes| {
            let announcer = Arc::clone(&announcer);
            async move { handler::handle(&announcer, changes).await }
        })
        .await
}
