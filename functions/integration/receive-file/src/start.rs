//! The function as a process: adapters built once, then messages until the environment ends.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::Owner;

use crate::handler::{self, Inbox};
use crate::receive::{ReceiveLimits, Receiver};

/// Runs `receive-file` for these job types; a binary of one's own hands its own types over.
///
/// # Errors
/// Where a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start(job_types: JobTypes) -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("receive-file").await?;
    let retention_days: u64 = runtime.setting("ROWMILL_UPLOAD_RETENTION_DAYS", 7)?;
    let inbox = Arc::new(Inbox {
        receiver: Receiver {
            creator: create_job::start::creator(&runtime, job_types)?,
            limits: ReceiveLimits {
                max_bytes: runtime.setting("ROWMILL_UPLOAD_MAX_BYTES", 100 * 1024 * 1024 * 1024)?,
                retention: Duration::from_secs(retention_days * 24 * 60 * 60),
            },
            default_owner: Owner(runtime.setting("ROWMILL_INBOX_OWNER", Owner::LOCAL.to_owned())?),
        },
        deliveries: runtime.inbox_deliveries()?,
        bucket: runtime.setting("ROWMILL_BUCKET", String::new())?,
    });
    runtime
        .serve_queue(move |batch| {
            let inbox = Arc::clone(&inbox);
            async move { handler::handle(&inbox, batch).await }
        })
        .await
}
