use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ports::{PortError, PortResult};

/// The objects of the bucket.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Reads the size, entity tag, media type and metadata of an object.
    ///
    /// # Errors
    /// `NotFound`.
    async fn head(&self, key: &str) -> Result<ObjectHead, PortError>;

    /// Reads a range of bytes of the object with this entity tag. A range past the object's end is cut off there.
    ///
    /// # Errors
    /// `NotFound`; `Changed` if the object was replaced (ETag mismatch).
    async fn read_range(&self, key: &str, etag: &str, range: Range<u64>) -> Result<Bytes, PortError>;

    /// Reads a whole object.
    ///
    /// # Errors
    /// `NotFound`.
    async fn read(&self, key: &str) -> Result<Bytes, PortError>;

    /// Stores a whole object and returns its entity tag.
    ///
    /// # Errors
    /// `Changed` if a SHA-256 (32 bytes) is given and the bytes do not match it.
    async fn put(&self, key: &str, content_type: &str, bytes: Bytes, sha256: Option<[u8; 32]>) -> PortResult<String>;
}

/// Erasing objects of the bucket.
#[async_trait]
pub trait ObjectErasures: Send + Sync {
    /// Erases the object with this key, if there is one.
    async fn erase_object(&self, key: &str) -> PortResult<()>;

    /// Erases objects whose keys begin with `prefix`, at most a thousand. Returns how many; 0 if there is none.
    async fn erase_objects(&self, prefix: &str) -> PortResult<usize>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectHead {
    /// Its length in bytes.
    pub size: u64,
    /// Its entity tag, with the quotes.
    pub etag: String,
    /// Its media type, as its writer declared it.
    pub content_type: Option<String>,
    /// The metadata of its writer, by lower-case name (`x-amz-meta-…` without that prefix).
    pub metadata: BTreeMap<String, String>,
}

/// The minimum size of a part in bytes, except for the last part (a limit of S3).
pub const PART_MIN_BYTES: usize = 5 * 1024 * 1024;

/// The most parts of an object.
pub const PARTS_MAX: u32 = 10_000;

/// The bytes of a part of an object of this size: the usual number, or more if there were too many parts.
pub fn part_bytes(usual: u64, size: u64) -> u64 {
    usual.max(size.div_ceil(PARTS_MAX.into()))
}

/// Presigned requests: transfers between a client and the bucket that bypass the functions. Without credentials to sign
/// with, all fail with `Unavailable`.
#[async_trait]
pub trait DirectTransfers: Send + Sync {
    /// Presigns a request that stores one object of exactly this length, and with this SHA-256 if one is given. It is
    /// refused (412) if the object exists, so that nobody can replace a stored file with it.
    async fn presign_put(
        &self,
        key: &str,
        content_type: &str,
        size: u64,
        sha256: Option<[u8; 32]>,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError>;

    /// Presigns a request that reads an object. Browsers save it under `file_name`.
    async fn presign_get(
        &self,
        key: &str,
        content_type: &str,
        file_name: &str,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError>;

    /// Presigns a request that stores one part of exactly this length. Parts are numbered from 1.
    async fn presign_part(
        &self,
        key: &str,
        multipart: &str,
        part: u32,
        size: u64,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError>;
}

/// Multipart uploads: objects that are too long for one request, or whose content is produced step by step. All methods
/// but the first fail with `NotFound` once the upload was completed or aborted.
#[async_trait]
pub trait MultipartObjects: Send + Sync {
    /// Begins a multipart upload and returns its identifier.
    async fn begin_multipart(&self, key: &str, content_type: &str) -> Result<String, PortError>;

    /// Stores a part. Every part except the last must have at least [`PART_MIN_BYTES`]. Parts are numbered from 1; a
    /// part with a number that exists replaces the stored one.
    async fn put_part(&self, key: &str, multipart: &str, number: u32, bytes: Bytes) -> Result<UploadedPart, PortError>;

    /// Lists the parts stored so far, in order.
    async fn parts(&self, key: &str, multipart: &str) -> Result<Vec<UploadedPart>, PortError>;

    /// Completes the upload: these parts become one object.
    ///
    /// # Errors
    /// `Changed` if one of the parts was replaced since, or is not stored. The S3 server of the
    /// adapter tests does not compare entity tags.
    async fn complete_multipart(&self, key: &str, multipart: &str, parts: &[UploadedPart]) -> Result<(), PortError>;

    /// Aborts the upload: its parts are deleted. A part that is being sent at the same time may survive; then
    /// [`parts`](Self::parts) lists it, and the upload must be aborted again.
    async fn abort_multipart(&self, key: &str, multipart: &str) -> Result<(), PortError>;
}

/// A presigned request: its URL carries the permission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresignedRequest {
    pub method: String,
    pub url: String,
    /// Headers that the client must send unchanged.
    pub headers: Vec<(String, String)>,
}

/// A stored part of a multipart upload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UploadedPart {
    /// Its number, from 1.
    pub number: u32,
    pub etag: String,
    /// Its length in bytes.
    pub size: u64,
}
