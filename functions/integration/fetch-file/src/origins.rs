//! Files on external servers, and objects in external buckets.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rowmill_core::model::files::NOT_GIVEN_OUT;
use rowmill_core::model::keys;
use rowmill_core::ports::{Objects, PortError, RemoteBytes, RemoteError, RemoteFile, RemoteFiles};

/// Where files are fetched from: what begins with `s3://` is an object.
pub struct Origins {
    pub servers: Arc<dyn RemoteFiles>,
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl RemoteFiles for Origins {
    async fn look(&self, url: &str) -> Result<RemoteFile, RemoteError> {
        if keys::of_other_bucket(url).is_none() {
            return self.servers.look(url).await;
        }
        let head = self.objects.head(url).await.map_err(refused)?;
        Ok(RemoteFile { size: Some(head.size), validator: Some(head.etag), content_type: head.content_type })
    }

    async fn read_range(&self, url: &str, version: (&str, u64), range: Range<u64>) -> Result<Bytes, RemoteError> {
        match keys::of_other_bucket(url) {
            None => self.servers.read_range(url, version, range).await,
            Some(_) => self.objects.read_range(url, version.0, range).await.map_err(refused),
        }
    }

    /// Only for servers: of each object ranges can be read.
    async fn read(&self, url: &str) -> Result<Box<dyn RemoteBytes>, RemoteError> {
        self.servers.read(url).await
    }
}

fn refused(error: PortError) -> RemoteError {
    match error {
        PortError::Changed => RemoteError::Changed,
        // Without the right to list, S3 denies what does not exist.
        PortError::NotFound | PortError::Denied { .. } | PortError::Invalid { .. } => {
            RemoteError::Refused(NOT_GIVEN_OUT.to_owned())
        }
        error => RemoteError::busy(format!("The bucket does not answer: {error}.")),
    }
}
