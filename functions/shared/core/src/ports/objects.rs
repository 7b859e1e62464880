use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::ports::PortError;

/// The objects of the bucket.
#[async_trait]
pub trait Objects: Send + Sync {
    /// What an object is.
    ///
    /// # Errors
    /// `NotFound`.
    async fn head(&self, key: &str) -> Result<ObjectHead, PortError>;

    /// Reads a range of bytes, of the object as it was when it had this entity tag. A range that goes past the object's
    /// end gives what there is.
    ///
    /// # Errors
    /// `NotFound`; `Changed` where the object has another entity tag by now.
    async fn read_range(&self, key: &str, etag: &str, range: Range<u64>) -> Result<Bytes, PortError>;

    /// Reads a whole object.
    ///
    /// # Errors
    /// `NotFound`.
    async fn read(&self, key: &str) -> Result<Bytes, PortError>;

    /// Stores an object whole, and says its entity tag.
    ///
    /// # Errors
    /// `Changed` where the bytes do not have this SHA-256 (32 bytes), if one is given.
    async fn put(
        &self,
        key: &str,
        content_type: &str,
        bytes: Bytes,
        sha256: Option<[u8; 32]>,
    ) -> Result<String, PortError>;
}

/// What an object is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectHead {
    /// Its length in bytes.
    pub size: u64,
    /// Its entity tag, as the store writes it (with its quotes).
    pub etag: String,
    /// Its media type, as whoever stored it said.
    pub content_type: Option<String>,
    /// What whoever stored it noted on it, by names in lower case (`x-amz-meta-…` without that prefix).
    pub metadata: BTreeMap<String, String>,
}

/// The fewest bytes of a part of an object, but for the last part (S3).
pub const PART_MIN_BYTES: usize = 5 * 1024 * 1024;

/// Transfers between a client and the bucket that do not pass through a function.
#[async_trait]
pub trait DirectTransfers: Send + Sync {
    /// A request with which anybody can store exactly one object of this length, and of this SHA-256 if one is given.
    ///
    /// # Errors
    /// `Unavailable` where there are no credentials to sign with.
    async fn presign_put(
        &self,
        key: &str,
        content_type: &str,
        size: u64,
        sha256: Option<[u8; 32]>,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError>;

    /// A request with which anybody can read an object, to be saved under this file name.
    ///
    /// # Errors
    /// `Unavailable` where there are no credentials to sign with.
    async fn presign_get(
        &self,
        key: &str,
        content_type: &str,
        file_name: &str,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError>;

    /// A request with which anybody can store one part of this length. Parts count from 1.
    ///
    /// # Errors
    /// `Unavailable` where there are no credentials to sign with.
    async fn presign_part(
        &self,
        key: &str,
        multipart: &str,
        part: u32,
        size: u64,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError>;
}

/// Objects that are stored in parts, since they are too long for one request or not known whole.
#[async_trait]
pub trait MultipartObjects: Send + Sync {
    /// Begins an upload in parts, and says its name.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn begin_multipart(&self, key: &str, content_type: &str) -> Result<String, PortError>;

    /// Stores a part; every part but the last must have at least [`PART_MIN_BYTES`]. Parts count from 1; one of a
    /// number that is there takes its place.
    ///
    /// # Errors
    /// `NotFound` where the upload was completed or given up.
    async fn put_part(&self, key: &str, multipart: &str, number: u32, bytes: Bytes) -> Result<UploadedPart, PortError>;

    /// The parts stored so far, in order.
    ///
    /// # Errors
    /// `NotFound` where the upload was completed or given up.
    async fn parts(&self, key: &str, multipart: &str) -> Result<Vec<UploadedPart>, PortError>;

    /// Makes one object of the parts.
    ///
    /// # Errors
    /// `NotFound` where the upload was completed or given up.
    async fn complete_multipart(&self, key: &str, multipart: &str, parts: &[UploadedPart]) -> Result<(), PortError>;
}

/// A request that carries its own permission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresignedRequest {
    /// The HTTP method.
    pub method: String,
    /// Where to.
    pub url: String,
    /// Headers that must be sent exactly so.
    pub headers: Vec<(String, String)>,
}

/// A stored part of a multipart upload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UploadedPart {
    /// Its number, counted from 1.
    pub number: u32,
    /// Its entity tag.
    pub etag: String,
    /// Its length in bytes.
    pub size: u64,
}
