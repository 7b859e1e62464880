use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::lock;
use rowmill_core::model::keys;
use rowmill_core::model::sha256::sha256_hex;
use rowmill_core::ports::{
    DirectTransfers, ListedObject, MultipartObjects, ObjectErasures, ObjectHead, ObjectLists, ObjectPage, Objects,
    PortError, PortResult, PresignedRequest, UploadedPart,
};

/// The bucket in memory. Its presigned requests have no server; tests call [`InMemoryObjects::store_part`] instead.
#[derive(Debug, Default)]
pub struct InMemoryObjects(Mutex<Bucket>);

#[derive(Debug, Default)]
struct Bucket {
    objects: HashMap<String, Object>,
    multiparts: HashMap<String, Multipart>,
    begun: usize,
}

#[derive(Debug, Default)]
struct Object {
    bytes: Bytes,
    etag: String,
    content_type: String,
    metadata: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Multipart {
    key: String,
    content_type: String,
    parts: BTreeMap<u32, Bytes>,
}

impl InMemoryObjects {
    /// Stores a part, as a client with a presigned request would.
    ///
    /// # Errors
    /// `NotFound` if the multipart upload does not exist.
    pub fn store_part(&self, multipart: &str, part: u32, bytes: Bytes) -> Result<(), PortError> {
        let mut bucket = lock(&self.0);
        let multipart = bucket.multiparts.get_mut(multipart).ok_or(PortError::NotFound)?;
        multipart.parts.insert(part, bytes);
        Ok(())
    }

    /// Deletes all objects with this key prefix, as a lifecycle rule does.
    pub fn expire(&self, prefix: &str) {
        lock(&self.0).objects.retain(|key, _| !key.starts_with(prefix));
    }

    /// Stores an object with metadata, as an external writer would. Returns its entity tag.
    pub fn store(&self, key: &str, content_type: &str, metadata: BTreeMap<String, String>, bytes: Bytes) -> String {
        let etag = etag(&bytes);
        let object = Object { bytes, etag: etag.clone(), content_type: content_type.to_owned(), metadata };
        lock(&self.0).objects.insert(key.to_owned(), object);
        etag
    }

    pub fn keys(&self) -> Vec<String> {
        lock(&self.0).objects.keys().cloned().collect()
    }

    pub fn delete(&self, key: &str) {
        lock(&self.0).objects.remove(key);
    }
}

fn etag(bytes: &[u8]) -> String {
    format!("\"{}\"", &sha256_hex(bytes)[..32])
}

#[async_trait]
impl Objects for InMemoryObjects {
    async fn head(&self, key: &str) -> Result<ObjectHead, PortError> {
        let bucket = lock(&self.0);
        let object = bucket.objects.get(key).ok_or(PortError::NotFound)?;
        Ok(ObjectHead {
            size: object.bytes.len() as u64,
            etag: object.etag.clone(),
            content_type: Some(object.content_type.clone()),
            metadata: object.metadata.clone(),
        })
    }

    async fn read_range(&self, key: &str, wanted: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        let bucket = lock(&self.0);
        let Object { bytes, etag, .. } = bucket.objects.get(key).ok_or(PortError::NotFound)?;
        if etag != wanted {
            return Err(PortError::Changed);
        }
        let end = range.end.min(bytes.len() as u64);
        let start = range.start.min(end);
        Ok(bytes.slice(start as usize..end as usize))
    }

    async fn read(&self, key: &str) -> Result<Bytes, PortError> {
        lock(&self.0).objects.get(key).map(|object| object.bytes.clone()).ok_or(PortError::NotFound)
    }

    async fn put(&self, key: &str, content_type: &str, bytes: Bytes, sha256: Option<[u8; 32]>) -> PortResult<String> {
        if sha256.is_some_and(|wanted| wanted != *Sha256::digest(&bytes)) {
            return Err(PortError::Changed);
        }
        Ok(self.store(key, content_type, BTreeMap::new(), bytes))
    }
}

#[async_trait]
impl ObjectErasures for InMemoryObjects {
    async fn erase_object(&self, key: &str) -> PortResult<()> {
        self.delete(key);
        Ok(())
    }

    async fn erase_objects(&self, prefix: &str) -> PortResult<usize> {
        let objects = &mut lock(&self.0).objects;
        let keys: Vec<String> =
            objects.keys().filter(|key| key.starts_with(prefix)).take(LISTED_MAX).cloned().collect();
        for key in &keys {
            objects.remove(key);
        }
        Ok(keys.len())
    }
}

#[async_trait]
impl ObjectLists for InMemoryObjects {
    async fn list(&self, bucket: &str, prefix: &str, after: Option<&str>) -> Result<ObjectPage, PortError> {
        let stored = lock(&self.0);
        let mut objects: Vec<ListedObject> = (stored.objects.iter())
            .filter_map(|(key, object)| {
                let (_, key) = keys::of_other_bucket(key).filter(|(of, _)| *of == bucket)?;
                let is_listed = key.starts_with(prefix) && after.is_none_or(|after| key > after);
                let (etag, size) = (object.etag.clone(), object.bytes.len() as u64);
                is_listed.then(|| ListedObject { key: key.to_owned(), etag, size })
            })
            .collect();
        objects.sort_by(|one, other| one.key.cmp(&other.key));
        let has_more = objects.len() > LISTED_MAX;
        objects.truncate(LISTED_MAX);
        Ok(ObjectPage { objects, has_more })
    }
}

/// The most objects of a page. S3 lists up to a thousand.
const LISTED_MAX: usize = 3;

#[async_trait]
impl DirectTransfers for InMemoryObjects {
    async fn presign_put(
        &self,
        key: &str,
        content_type: &str,
        size: u64,
        _sha256: Option<[u8; 32]>,
        _expires_in: Duration,
    ) -> Result<PresignedRequest, PortError> {
        let headers = vec![
            ("content-type".into(), content_type.to_owned()),
            ("content-length".into(), size.to_string()),
            ("if-none-match".into(), "*".into()),
        ];
        Ok(PresignedRequest { method: "PUT".into(), url: format!("memory:{key}"), headers })
    }

    async fn presign_get(
        &self,
        key: &str,
        _content_type: &str,
        file_name: &str,
        _expires_in: Duration,
    ) -> Result<PresignedRequest, PortError> {
        Ok(PresignedRequest {
            method: "GET".into(),
            url: format!("memory:{key}?as={}", file_name.replace('"', "_")),
            headers: vec![],
        })
    }

    async fn presign_part(
        &self,
        key: &str,
        multipart: &str,
        part: u32,
        size: u64,
        _expires_in: Duration,
    ) -> Result<PresignedRequest, PortError> {
        let headers = vec![("content-length".into(), size.to_string())];
        Ok(PresignedRequest { method: "PUT".into(), url: format!("memory:{key}?{multipart}&{part}"), headers })
    }
}

#[async_trait]
impl MultipartObjects for InMemoryObjects {
    async fn begin_multipart(&self, key: &str, content_type: &str) -> Result<String, PortError> {
        let mut bucket = lock(&self.0);
        bucket.begun += 1;
        let name = format!("multipart-{}", bucket.begun);
        let (key, content_type) = (key.to_owned(), content_type.to_owned());
        bucket.multiparts.insert(name.clone(), Multipart { key, content_type, parts: BTreeMap::new() });
        Ok(name)
    }

    async fn put_part(
        &self,
        _key: &str,
        multipart: &str,
        number: u32,
        bytes: Bytes,
    ) -> Result<UploadedPart, PortError> {
        let part = UploadedPart { number, etag: etag(&bytes), size: bytes.len() as u64 };
        self.store_part(multipart, number, bytes)?;
        Ok(part)
    }

    async fn parts(&self, _key: &str, multipart: &str) -> Result<Vec<UploadedPart>, PortError> {
        let bucket = lock(&self.0);
        let multipart = bucket.multiparts.get(multipart).ok_or(PortError::NotFound)?;
        let part = |(number, bytes): (&u32, &Bytes)| UploadedPart {
            number: *number,
            etag: etag(bytes),
            size: bytes.len() as u64,
        };
        Ok(multipart.parts.iter().map(part).collect())
    }

    async fn complete_multipart(&self, key: &str, multipart: &str, parts: &[UploadedPart]) -> Result<(), PortError> {
        let mut bucket = lock(&self.0);
        let stored = bucket.multiparts.get(multipart).filter(|stored| stored.key == key).ok_or(PortError::NotFound)?;
        let mut whole = Vec::new();
        for part in parts {
            let bytes = stored.parts.get(&part.number).ok_or(PortError::Changed)?;
            if part.etag != etag(bytes) {
                return Err(PortError::Changed);
            }
            whole.extend_from_slice(bytes);
        }
        let content_type = stored.content_type.clone();
        bucket.multiparts.remove(multipart);
        let object = Object { etag: etag(&whole), bytes: whole.into(), content_type, metadata: BTreeMap::new() };
        bucket.objects.insert(key.to_owned(), object);
        Ok(())
    }

    async fn abort_multipart(&self, key: &str, multipart: &str) -> Result<(), PortError> {
        let mut bucket = lock(&self.0);
        bucket.multiparts.get(multipart).filter(|stored| stored.key == key).ok_or(PortError::NotFound)?;
        bucket.multiparts.remove(multipart);
        Ok(())
    }
}
