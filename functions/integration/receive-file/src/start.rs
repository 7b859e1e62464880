//! Start-up: reads the settings and builds the adapters once, then serves messages.

use std::sync::Arc;

use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::Owner;
use rowmill_settings::SettingsGroup;

use crate::handler::{self, Inbox};
use crate::limits::{FileLimits, InboxSettings};
use crate::receive::Receiver;

/// Runs `receive-file` with these job types. A binary with its own job types passes them here.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start(job_types: JobTypes) -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("receive-file").await?;
    let inbox = Arc::new(Inbox {
        receiver: Receiver {
            creator: create_job::start::creator(&runtime, job_types)?,
            blocked: runtime.block_check()?,
            limits: FileLimits::from_env()?,
            default_owner: Owner(InboxSettings::from_env()?.owner),
        },
        deliveries: runtime.inbox_deliveries()?,
        bucket: rowmill_settings::BUCKET.read()?,
    });
    runtime
        .serve_queue(move |batch| {
            let inbox = Arc::clone(&inbox);
            async move { handler::handle(&inbox, batch).await }
        })
        .await
}
