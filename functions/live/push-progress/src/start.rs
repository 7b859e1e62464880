//! Start-up: builds the adapters once, then serves changes of the jobs table.

use std::sync::Arc;

use rowmill_core::progress::views::job_reader::JobReader;
use rowmill_core::sending::live_sender::LiveSender;

use crate::handler;
use crate::push::Pusher;

/// Runs `push-progress`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("push-progress").await?;
    let (live, clock) = (runtime.live_store()?, runtime.clock());
    let reader = JobReader { jobs: runtime.job_store()?, clock: clock.clone() };
    let sender = LiveSender { connections: live.clone(), sender: runtime.connection_sender()?, clock };
    let pusher = Arc::new(Pusher::new(reader, live, sender));
    runtime
        .serve_stream(move |changes| {
            let pusher = Arc::clone(&pusher);
            async move { handler::handle(&pusher, changes).await.map(|()| None) }
        })
        .await
}
