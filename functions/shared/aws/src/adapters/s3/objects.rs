use std::ops::Range;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use aws_smithy_types::byte_stream::error::Error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use rowmill_core::model::keys;
use rowmill_core::ports::{
    ListedObject, ObjectErasures, ObjectHead, ObjectLists, ObjectPage, Objects, PortError, PortResult,
};

use super::errors::{error_at, is_beyond_the_end, port_error};
use crate::sdk::denied::{denied, is_denied};

/// Maximum number of reads of an incomplete body. The SDK retries requests, but not after it has received the headers.
const BODY_READS: usize = 3;

#[derive(Clone, Debug)]
pub struct S3Objects {
    pub(super) client: Client,
    pub(super) bucket: String,
}

impl S3Objects {
    pub const fn new(client: Client, bucket: String) -> Self {
        Self { client, bucket }
    }

    /// The bucket and the key of an object.
    pub(super) fn place<'a>(&'a self, key: &'a str) -> (&'a str, &'a str) {
        keys::of_other_bucket(key).unwrap_or((&self.bucket, key))
    }

    /// Reads an object or a range of it. If an entity tag is given, the object must have it.
    async fn get(
        &self,
        doing: &'static str,
        key: &str,
        etag: Option<&str>,
        range: Option<String>,
    ) -> Result<Bytes, PortError> {
        let (bucket, name) = self.place(key);
        let request = self.client.get_object().bucket(bucket).key(name);
        let request = request.set_if_match(etag.map(str::to_owned)).set_range(range);
        for read in 1.. {
            let output = match request.clone().send().await {
                Err(error) if is_beyond_the_end(&error) => return Ok(Bytes::new()),
                output => output.map_err(|error| error_at(key, doing, error))?,
            };
            let length = output.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
            match collect(output.body, length).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) if read == BODY_READS => return Err(PortError::unavailable(doing, error)),
                Err(error) => tracing::debug!(%error, "body broke off"),
            }
        }
        unreachable!("the last read returns")
    }
}

/// Collects a body of this length in one buffer. `ByteStream::collect` holds it twice at the end: in pieces and whole.
async fn collect(mut body: ByteStream, length: usize) -> Result<Bytes, Error> {
    let mut bytes = BytesMut::with_capacity(length);
    while let Some(piece) = body.try_next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

/// A SHA-256 as S3 headers encode it.
pub fn checksum(sha256: [u8; 32]) -> String {
    STANDARD.encode(sha256)
}

#[async_trait]
impl Objects for S3Objects {
    async fn head(&self, key: &str) -> Result<ObjectHead, PortError> {
        const DOING: &str = "looking at an object";
        let (bucket, name) = self.place(key);
        let output = self.client.head_object().bucket(bucket).key(name).send().await;
        let output = output.map_err(|error| error_at(key, DOING, error))?;
        let size = output.content_length().and_then(|size| u64::try_from(size).ok());
        let size = size.ok_or_else(|| PortError::invalid(DOING, "the answer has no length"))?;
        let etag = output.e_tag.ok_or_else(|| PortError::invalid(DOING, "the answer has no entity tag"))?;
        let metadata = output.metadata.unwrap_or_default();
        let metadata = metadata.into_iter().map(|(name, note)| (name.to_ascii_lowercase(), note)).collect();
        Ok(ObjectHead { size, etag, content_type: output.content_type, metadata })
    }

    async fn read_range(&self, key: &str, etag: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        const DOING: &str = "reading a range of an object";
        if range.is_empty() {
            // HTTP cannot request an empty range, but the entity tag must be checked all the same.
            let (bucket, name) = self.place(key);
            let request = self.client.head_object().bucket(bucket).key(name).if_match(etag);
            request.send().await.map_err(|error| error_at(key, DOING, error))?;
            return Ok(Bytes::new());
        }
        let header = format!("bytes={}-{}", range.start, range.end - 1);
        self.get(DOING, key, Some(etag), Some(header)).await
    }

    async fn read(&self, key: &str) -> Result<Bytes, PortError> {
        self.get("reading an object", key, None, None).await
    }

    async fn put(&self, key: &str, content_type: &str, bytes: Bytes, sha256: Option<[u8; 32]>) -> PortResult<String> {
        const DOING: &str = "storing an object";
        let (bucket, name) = self.place(key);
        let request = self.client.put_object().bucket(bucket).key(name).content_type(content_type);
        let request = request.set_checksum_sha256(sha256.map(checksum)).body(ByteStream::from(bytes));
        let output = request.send().await.map_err(|error| error_at(key, DOING, error))?;
        output.e_tag.ok_or_else(|| PortError::invalid(DOING, "the answer has no entity tag"))
    }
}

#[async_trait]
impl ObjectErasures for S3Objects {
    async fn erase_object(&self, key: &str) -> PortResult<()> {
        let request = self.client.delete_object().bucket(&self.bucket).key(key);
        request.send().await.map_err(|error| port_error("erasing an object", error))?;
        Ok(())
    }

    async fn erase_objects(&self, prefix: &str) -> PortResult<usize> {
        const DOING: &str = "erasing objects";
        let listed = self.client.list_objects_v2().bucket(&self.bucket).prefix(prefix).send().await;
        let keys = listed.map_err(|error| port_error(DOING, error))?.contents.unwrap_or_default();
        let keys = keys.into_iter().filter_map(|object| object.key);
        let keys = keys.map(|key| ObjectIdentifier::builder().key(key).build()).collect::<Result<Vec<_>, _>>();
        let keys = keys.map_err(|error| PortError::invalid(DOING, error))?;
        let count = keys.len();
        if count > 0 {
            let keys = Delete::builder().set_objects(Some(keys)).quiet(true).build();
            let keys = keys.map_err(|error| PortError::invalid(DOING, error))?;
            let erased = self.client.delete_objects().bucket(&self.bucket).delete(keys).send().await;
            let erased = erased.map_err(|error| port_error(DOING, error))?;
            // It erases the others all the same.
            if let Some(error) = erased.errors().first() {
                let why = error.message().or(error.code()).unwrap_or("no reason given").to_owned();
                return Err(if is_denied(error.code()) {
                    denied(DOING, Some(&why), why.clone())
                } else {
                    PortError::unavailable(DOING, why)
                });
            }
        }
        Ok(count)
    }
}

#[async_trait]
impl ObjectLists for S3Objects {
    async fn list(&self, bucket: &str, prefix: &str, after: Option<&str>) -> Result<ObjectPage, PortError> {
        const DOING: &str = "listing the objects of a bucket";
        let request = self.client.list_objects_v2().bucket(bucket).prefix(prefix);
        let output = request.set_start_after(after.map(str::to_owned)).send().await;
        let output = output.map_err(|error| match error.code() {
            Some("NoSuchBucket") => PortError::NotFound,
            _ => port_error(DOING, error),
        })?;
        let has_more = output.is_truncated.unwrap_or_default();
        let objects = output.contents.unwrap_or_default().into_iter().map(|object| {
            let size = object.size.and_then(|size| u64::try_from(size).ok());
            let (Some(key), Some(etag), Some(size)) = (object.key, object.e_tag, size) else {
                return Err(PortError::invalid(DOING, "an object has no key, entity tag or size"));
            };
            Ok(ListedObject { key, etag, size })
        });
        Ok(ObjectPage { objects: objects.collect::<Result<_, _>>()?, has_more })
    }
}
