use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;

use super::lock;
use crate::model::ids::FileGuid;
use crate::model::upload::{Upload, UploadState};
use crate::ports::{PortError, UploadStore};

#[derive(Debug, Default)]
pub struct InMemoryUploadStore(Mutex<HashMap<FileGuid, Upload>>);

#[async_trait]
impl UploadStore for InMemoryUploadStore {
    async fn create(&self, upload: &Upload) -> Result<(), PortError> {
        lock(&self.0).entry(upload.file_guid).or_insert_with(|| upload.clone());
        Ok(())
    }

    async fn upload(&self, file_guid: FileGuid, now: Timestamp) -> Result<Upload, PortError> {
        let uploads = lock(&self.0);
        uploads.get(&file_guid).filter(|upload| upload.expires_at > now).cloned().ok_or(PortError::NotFound)
    }

    async fn mark_ready(&self, file_guid: FileGuid, etag: &str) -> Result<(), PortError> {
        let mut uploads = lock(&self.0);
        let upload = uploads.get_mut(&file_guid).ok_or(PortError::NotFound)?;
        upload.state = UploadState::Ready { etag: etag.to_owned() };
        Ok(())
    }

    async fn remove_unfinished(&self, file_guid: FileGuid) -> Result<(), PortError> {
        let mut uploads = lock(&self.0);
        if let Some(Upload { state: UploadState::Ready { .. }, .. }) = uploads.get(&file_guid) {
            return Err(PortError::Changed);
        }
        uploads.remove(&file_guid);
        Ok(())
    }
}
