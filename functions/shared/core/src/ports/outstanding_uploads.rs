use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{FileGuid, Owner};
use crate::model::outstanding::{OutstandingFull, OutstandingLimits, OutstandingUpload};
use crate::ports::PortError;

/// The uploads that each owner has announced and not completed.
#[async_trait]
pub trait OutstandingUploads: Send + Sync {
    /// Adds an upload, unless it does not fit beside those that still count at `now`. Idempotent.
    async fn add(
        &self,
        owner: &Owner,
        upload: &OutstandingUpload,
        limits: OutstandingLimits,
        now: Timestamp,
    ) -> Result<(), OutstandingError>;

    /// Removes an upload, if it is there. Idempotent.
    async fn remove(&self, owner: &Owner, file_guid: FileGuid) -> Result<(), PortError>;
}

#[derive(Debug, thiserror::Error)]
pub enum OutstandingError {
    #[error("{} uploads with {} bytes are outstanding", .0.uploads, .0.bytes)]
    Full(OutstandingFull),
    #[error(transparent)]
    Port(#[from] PortError),
}
