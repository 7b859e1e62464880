//! The gates before the bucket and before the uploads' rows.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use rowmill_core::in_memory::{InMemoryObjects, InMemoryUploadStore};
use rowmill_core::model::ids::FileGuid;
use rowmill_core::model::upload::Upload;
use rowmill_core::ports::{MultipartObjects, ObjectHead, Objects, PortError, UploadStore, UploadedPart};

use super::gated;
use super::hub::{CallKind, Hub};
use super::invariants::Invariants;

/// The gate before the bucket.
pub struct GatedObjects {
    /// What is behind it.
    pub store: Arc<InMemoryObjects>,
    /// What it asks.
    pub hub: Hub,
    /// What must hold of a chunk index.
    pub invariants: Arc<Invariants>,
}

/// A key without the long names in it.
fn short(key: &str) -> &str {
    key.char_indices().nth(36 + "results/".len()).map_or(key, |(place, _)| &key[place..])
}

#[async_trait]
impl Objects for GatedObjects {
    async fn head(&self, key: &str) -> Result<ObjectHead, PortError> {
        gated!(self, Read, "head", ["…{}", short(key)], self.store.head(key).await)
    }

    async fn read_range(&self, key: &str, etag: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        let store = &self.store;
        gated!(self, Read, "read_range", ["{range:?}"], store.read_range(key, etag, range.clone()).await)
    }

    async fn read(&self, key: &str) -> Result<Bytes, PortError> {
        gated!(self, Read, "read", ["…{}", short(key)], self.store.read(key).await)
    }

    async fn put(
        &self,
        key: &str,
        content_type: &str,
        bytes: Bytes,
        sha256: Option<[u8; 32]>,
    ) -> Result<String, PortError> {
        gated!(self, Write, "put", ["…{}, {} bytes", short(key), bytes.len()], {
            let put = self.store.put(key, content_type, bytes.clone(), sha256).await;
            self.hub.check(self.invariants.object_put(key, &bytes));
            put
        })
    }
}

#[async_trait]
impl MultipartObjects for GatedObjects {
    async fn begin_multipart(&self, key: &str, content_type: &str) -> Result<String, PortError> {
        gated!(self, Write, "begin_multipart", ["…{}", short(key)], self.store.begin_multipart(key, content_type).await)
    }

    async fn put_part(&self, key: &str, multipart: &str, number: u32, bytes: Bytes) -> Result<UploadedPart, PortError> {
        gated!(self, Write, "put_part", ["…{}, {number}", short(key)], {
            self.store.put_part(key, multipart, number, bytes.clone()).await
        })
    }

    async fn parts(&self, key: &str, multipart: &str) -> Result<Vec<UploadedPart>, PortError> {
        gated!(self, Read, "parts", ["…{}", short(key)], self.store.parts(key, multipart).await)
    }

    async fn complete_multipart(&self, key: &str, multipart: &str, parts: &[UploadedPart]) -> Result<(), PortError> {
        gated!(self, Write, "complete_multipart", ["…{}", short(key)], {
            self.store.complete_multipart(key, multipart, parts).await
        })
    }
}

/// The gate before the uploads' rows.
pub struct GatedUploads {
    /// What is behind it.
    pub store: Arc<InMemoryUploadStore>,
    /// What it asks.
    pub hub: Hub,
}

#[async_trait]
impl UploadStore for GatedUploads {
    async fn create(&self, upload: &Upload) -> Result<(), PortError> {
        gated!(self, Write, "create upload", [""], self.store.create(upload).await)
    }

    async fn upload(&self, file_guid: FileGuid, now: Timestamp) -> Result<Upload, PortError> {
        gated!(self, Read, "upload", ["{}", file_guid.0.as_u128() & 0xffff], self.store.upload(file_guid, now).await)
    }

    async fn mark_ready(&self, file_guid: FileGuid, etag: &str) -> Result<(), PortError> {
        gated!(self, Write, "mark_ready", [""], self.store.mark_ready(file_guid, etag).await)
    }
}
