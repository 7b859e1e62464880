use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;

use super::lock;
use rowmill_core::model::ids::FileGuid;
use rowmill_core::model::upload::{FetchBegun, FetchFailure, Origin, Upload, UploadState};
use rowmill_core::ports::{PortError, UploadStore};

#[derive(Debug, Default)]
pub struct InMemoryUploadStore(Mutex<HashMap<FileGuid, Upload>>);

/// The last state of an upload. What is only needed to fetch it is forgotten.
fn end(upload: &mut Upload, state: UploadState) {
    upload.state = state;
    if let Some(origin) = &mut upload.origin {
        (origin.url, origin.validator) = (None, None);
    }
}

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
        end(upload, UploadState::Ready { etag: etag.to_owned() });
        Ok(())
    }

    async fn begin_fetch(&self, file_guid: FileGuid, begun: &FetchBegun) -> Result<(), PortError> {
        let mut uploads = lock(&self.0);
        let upload = uploads.get_mut(&file_guid).ok_or(PortError::NotFound)?;
        if matches!(&upload.state, UploadState::Pending { multipart: Some(there) } if *there == begun.multipart) {
            return Ok(());
        }
        let is_first = matches!(upload.state, UploadState::Pending { multipart: None });
        let origin = upload.origin.clone().filter(|_| is_first).ok_or(PortError::Changed)?;
        let FetchBegun { size, content_type, validator, multipart } = begun.clone();
        *upload = Upload {
            size,
            content_type,
            state: UploadState::Pending { multipart: Some(multipart) },
            origin: Some(Origin { validator, ..origin }),
            ..upload.clone()
        };
        Ok(())
    }

    async fn fail(&self, file_guid: FileGuid, failure: &FetchFailure) -> Result<(), PortError> {
        let mut uploads = lock(&self.0);
        let upload = uploads.get_mut(&file_guid).ok_or(PortError::NotFound)?;
        if matches!(upload.state, UploadState::Ready { .. }) {
            return Err(PortError::Changed);
        }
        if matches!(upload.state, UploadState::Pending { .. }) {
            end(upload, UploadState::Failed(failure.clone()));
        }
        Ok(())
    }

    async fn remove(&self, file_guid: FileGuid) -> Result<(), PortError> {
        lock(&self.0).remove(&file_guid);
        Ok(())
    }
}
