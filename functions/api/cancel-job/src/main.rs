//! The Lambda function `cancel-job`.

use std::sync::Arc;

use cancel_job::cancel::Canceller;
use cancel_job::handler;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("cancel-job").await?;
    let canceller = Arc::new(Canceller { jobs: runtime.job_store()?, clock: runtime.clock() });
    runtime
        .serve_http(move |request| {
            let canceller = Arc::clone(&canceller);
            async move { handler::handle(&canceller, request).await }
        })
        .await
}
