use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

/// Files on external servers.
#[async_trait]
pub trait RemoteFiles: Send + Sync {
    /// Looks at the file at this URL.
    async fn look(&self, url: &str) -> Result<RemoteFile, RemoteError>;

    /// Reads a range of bytes of the version with this validator and this size.
    ///
    /// # Errors
    /// `Changed` if there is another version now.
    async fn read_range(&self, url: &str, version: (&str, u64), range: Range<u64>) -> Result<Bytes, RemoteError>;

    /// Reads the file from its beginning, whichever version there is.
    async fn read(&self, url: &str) -> Result<Box<dyn RemoteBytes>, RemoteError>;
}

/// The bytes of a file, one piece after the other.
#[async_trait]
pub trait RemoteBytes: Send {
    /// The next piece; `None` at the end of the file.
    async fn next(&mut self) -> Result<Option<Bytes>, RemoteError>;
}

/// What a server says of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteFile {
    /// Its length in bytes, if it is known.
    pub size: Option<u64>,
    /// Names the version. `None` if no range of a version can be read.
    pub validator: Option<String>,
    pub content_type: Option<String>,
}

/// Why a file cannot be read. The texts are for the owner of the upload.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RemoteError {
    /// Another try may help.
    #[error("{detail}")]
    Busy { detail: String, retry_after: Option<Duration> },
    /// Another try does not help.
    #[error("{0}")]
    Refused(String),
    #[error("The file has changed at its source while it was fetched. Fetch it again.")]
    Changed,
}

impl RemoteError {
    pub fn busy(detail: impl Into<String>) -> Self {
        Self::Busy { detail: detail.into(), retry_after: None }
    }
}
