//! Start-up: builds the adapters once, then serves requests.

use std::sync::Arc;

use rowmill_settings::{JobRetention, SettingsGroup};

use crate::cancel::Canceller;
use crate::handler::{self, UseCases};
use crate::pause::Pauser;

/// Runs `cancel-job`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start(crate::NAME).await?;
    let (jobs, clock) = (runtime.job_store()?, runtime.clock());
    let canceller =
        Canceller { jobs: jobs.clone(), clock: clock.clone(), retention: JobRetention::from_env()?.retention };
    let use_cases = Arc::new(UseCases { canceller, pauser: Pauser { jobs, splits: runtime.split_queue()?, clock } });
    runtime
        .serve_api(move |call| {
            let use_cases = Arc::clone(&use_cases);
            async move { handler::handle(&use_cases, &call).await }
        })
        .await
}
