//! Start-up: builds the adapters once, then serves requests.

use std::sync::Arc;

use crate::cancel::Canceller;
use crate::handler;

/// Runs `cancel-job`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start(crate::NAME).await?;
    let canceller = Arc::new(Canceller { jobs: runtime.job_store()?, clock: runtime.clock() });
    runtime
        .serve_api(move |call| {
            let canceller = Arc::clone(&canceller);
            async move { handler::handle(&canceller, &call).await }
        })
        .await
}
