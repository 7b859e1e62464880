use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{FileGuid, Owner};
use crate::model::upload::Upload;
use crate::ports::PortError;

/// The uploads by name.
#[async_trait]
pub trait UploadStore: Send + Sync {
    /// Remembers a new upload. Where one of this name is there already, it stays as it is.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn create(&self, upload: &Upload) -> Result<(), PortError>;

    /// The upload of this name that has not expired by `now`.
    ///
    /// # Errors
    /// `NotFound`.
    async fn upload(&self, file_guid: FileGuid, now: Timestamp) -> Result<Upload, PortError>;

    /// Notes that the upload is stored whole. Noting it again changes nothing.
    ///
    /// # Errors
    /// `NotFound`.
    async fn mark_ready(&self, file_guid: FileGuid, etag: &str) -> Result<(), PortError>;
}

impl dyn UploadStore {
    /// The owner's upload of this name that has not expired by `now`.
    ///
    /// # Errors
    /// `NotFound` if there is none, or if it is another owner's: a caller must not learn that it exists.
    pub async fn owned(&self, owner: &Owner, file_guid: FileGuid, now: Timestamp) -> Result<Upload, PortError> {
        let upload = self.upload(file_guid, now).await?;
        if upload.owner == *owner { Ok(upload) } else { Err(PortError::NotFound) }
    }
}
