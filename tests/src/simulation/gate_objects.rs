//! The gates before the bucket and before the upload store.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use rowmill_core::model::ids::FileGuid;
use rowmill_core::model::upload::{FetchBegun, FetchFailure, Upload};
use rowmill_core::ports::{MultipartObjects, ObjectHead, Objects, PortError, PortResult, UploadStore, UploadedPart};
use rowmill_testing::in_memory::{InMemoryObjects, InMemoryUploadStore};

use super::gates;
use super::hub::{CallKind, Hub};
use super::invariants::Invariants;

pub struct GatedObjects {
    pub store: Arc<InMemoryObjects>,
    /// Decides about each call.
    pub hub: Hub,
    /// Checked after every write of a chunk index.
    pub invariants: Arc<Invariants>,
}

/// A key without its long prefix.
fn short(key: &str) -> &str {
    key.char_indices().nth(36 + "results/".len()).map_or(key, |(place, _)| &key[place..])
}

gates!(Objects for GatedObjects {
    Read head(key: &str) -> Result<ObjectHead, PortError>, ["…{}", short(key)];
    Read read_range(key: &str, etag: &str, range: Range<u64>) -> Result<Bytes, PortError>, ["{range:?}"];
    Read read(key: &str) -> Result<Bytes, PortError>, ["…{}", short(key)];
    {
        async fn put(&self, key: &str, content_type: &str, bytes: Bytes, sha256: Option<[u8; 32]>) -> PortResult<String> {
            let detail = || format!("…{}, {} bytes", short(key), bytes.len());
            let effect = async {
                let put = self.store.put(key, content_type, bytes.clone(), sha256).await;
                self.hub.check(self.invariants.object_put(key, &bytes));
                put
            };
            self.hub.through(CallKind::Write, "put", detail, effect).await
        }
    }
});

gates!(MultipartObjects for GatedObjects {
    Write begin_multipart(key: &str, content_type: &str) -> Result<String, PortError>, ["…{}", short(key)];
    Write put_part(key: &str, multipart: &str, number: u32, bytes: Bytes) -> Result<UploadedPart, PortError>,
        ["…{}, {number}", short(key)];
    Read parts(key: &str, multipart: &str) -> Result<Vec<UploadedPart>, PortError>, ["…{}", short(key)];
    Write complete_multipart(key: &str, multipart: &str, parts: &[UploadedPart]) -> Result<(), PortError>,
        ["…{}", short(key)];
    Write abort_multipart(key: &str, multipart: &str) -> Result<(), PortError>, ["…{}", short(key)];
});

pub struct GatedUploads {
    pub store: Arc<InMemoryUploadStore>,
    /// Decides about each call.
    pub hub: Hub,
}

gates!(UploadStore for GatedUploads {
    Write create(upload: &Upload) -> Result<(), PortError>, ["the upload"];
    Read upload(file_guid: FileGuid, now: Timestamp) -> Result<Upload, PortError>,
        ["{}", file_guid.0.as_u128() & 0xffff];
    Write begin_fetch(file_guid: FileGuid, begun: &FetchBegun) -> Result<(), PortError>, ["the upload"];
    Write fail(file_guid: FileGuid, failure: &FetchFailure) -> Result<(), PortError>, ["the upload"];
    Write mark_ready(file_guid: FileGuid, etag: &str) -> Result<(), PortError>, ["the upload"];
    Write remove(file_guid: FileGuid) -> Result<(), PortError>, ["the upload"];
});
