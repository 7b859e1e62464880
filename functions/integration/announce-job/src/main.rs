//! The Lambda function `announce-job`.

use std::sync::Arc;

use announce_job::announce::Announcer;
use announce_job::handler;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("announce-job").await?;
    let announcer = Arc::new(Announcer { events: runtime.events()? });
    runtime
        .serve_stream(move |changes| {
            let announcer = Arc::clone(&announcer);
            async move { handler::handle(&announcer, changes).await }
        })
        .await
}
