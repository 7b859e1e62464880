use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::{FileGuid, Owner};
use crate::model::upload::{FetchBegun, FetchFailure, Upload};
use crate::ports::PortError;

#[async_trait]
pub trait UploadStore: Send + Sync {
    /// Stores a new upload. An existing row of the same identifier stays unchanged.
    async fn create(&self, upload: &Upload) -> Result<(), PortError>;

    /// Reads an upload.
    ///
    /// # Errors
    /// `NotFound` if it does not exist or has expired by `now`.
    async fn upload(&self, file_guid: FileGuid, now: Timestamp) -> Result<Upload, PortError>;

    /// Notes what the first look at the origin of an upload has found, and the multipart upload for its parts.
    ///
    /// # Errors
    /// `NotFound`; `Changed` if it has another multipart upload, is ready, or has failed.
    async fn begin_fetch(&self, file_guid: FileGuid, begun: &FetchBegun) -> Result<(), PortError>;

    /// Notes that the upload cannot be fetched, and forgets the whole URL of its origin. The first failure stays.
    ///
    /// # Errors
    /// `NotFound`; `Changed` if it is ready.
    async fn fail(&self, file_guid: FileGuid, failure: &FetchFailure) -> Result<(), PortError>;

    /// Notes that the upload is stored completely, and forgets the whole URL of its origin. Idempotent.
    ///
    /// # Errors
    /// `NotFound`.
    async fn mark_ready(&self, file_guid: FileGuid, etag: &str) -> Result<(), PortError>;

    /// Removes an upload. Idempotent: a missing row is no error.
    async fn remove(&self, file_guid: FileGuid) -> Result<(), PortError>;
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
