//! Start-up: builds the use case once, then serves messages.

use rowmill_aws::host::serve;
use rowmill_core::callers::blocked::BlockCheck;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::Owner;
use rowmill_core::ports::BoxError;

use crate::declaration::FUNCTION;
use crate::handler::{self, Inbox};
use crate::limits::{FileLimits, InboxSettings};
use crate::receive::Receiver;

/// Runs `receive-file` with these job types. A binary with its own job types passes them here.
pub async fn start(job_types: JobTypes) -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let owner = runtime.settings::<InboxSettings>()?.owner;
    let receiver = Receiver {
        creator: create_job::start::creator(&runtime, job_types)?,
        blocked: BlockCheck::new(ports.blocks.get()?, ports.clock.get()?),
        limits: runtime.settings::<FileLimits>()?,
        default_owner: Owner::of_name(&owner).ok_or_else(|| format!("InboxOwner is `{owner}`, which is no owner"))?,
    };
    let (deliveries, bucket) = (ports.inbox_deliveries.get()?, rowmill_settings::BUCKET.read()?);
    serve::queue(&runtime, Inbox { receiver, deliveries, bucket }, handler::handle).await
}
