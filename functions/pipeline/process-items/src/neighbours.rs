//! One read for chunks that are neighbours in a file.
//!
//! An invocation gets up to ten messages, and most of the time their chunks follow each other in the file. Then one
//! ranged GET serves all of them. It is made when the first of these chunks needs its bytes, so nothing is read for
//! chunks that are done or whose job was stopped. If it fails, each chunk makes a read of its own, so it gets the
//! answer that it would have got without neighbours.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use rowmill_core::items::input::{SHARED_READ_MAX_BYTES, follows};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::tally::ChunkAddress;
use rowmill_core::ports::{ObjectHead, Objects, PortError, PortResult};
use tokio::sync::OnceCell;

/// The chunks of an invocation that share reads.
#[derive(Default)]
pub struct Neighbours(Mutex<HashMap<(JobGuid, ChunkAddress), Arc<SharedRead>>>);

/// A range of a file with the bytes of several chunks.
pub(crate) struct SharedRead {
    range: Range<u64>,
    /// Its bytes; `None` if they could not be read.
    bytes: OnceCell<Option<Bytes>>,
}

impl Neighbours {
    /// Finds the neighbours among these messages, which are delivered for the first time.
    pub fn of<'m>(messages: impl IntoIterator<Item = &'m ChunkMessage>) -> Self {
        let mut chunks: Vec<_> = messages.into_iter().filter(|message| may_share(message)).collect();
        chunks.sort_by_key(|message| (message.job_guid, message.chunk.offset));
        let are_neighbours = |one: &&ChunkMessage, next: &&ChunkMessage| {
            one.job_guid == next.job_guid && one.part == next.part && follows(&one.chunk, &next.chunk)
        };
        let mut shared = HashMap::new();
        for group in chunks.chunk_by(are_neighbours) {
            let mut group = group.to_vec();
            while let Some(first) = group.first() {
                let start = first.chunk.offset;
                let fit =
                    group.iter().take_while(|message| message.chunk.end() - start <= SHARED_READ_MAX_BYTES).count();
                let rest = group.split_off(fit.max(1));
                if let [first, .., last] = &group[..] {
                    let range = first.range().start..last.range().end;
                    let read = Arc::new(SharedRead { range, bytes: OnceCell::new() });
                    shared.extend(group.iter().map(|message| (place(message), Arc::clone(&read))));
                }
                group = rest;
            }
        }
        Self(Mutex::new(shared))
    }

    /// The read that this chunk shares with others. Each message gets it once: its bytes are freed when all who have
    /// got it have ended.
    pub(crate) fn take(&self, message: &ChunkMessage) -> Option<Arc<SharedRead>> {
        self.0.lock().remove(&place(message))
    }
}

/// True if the chunk's bytes are a range of the upload, and will very likely be read.
fn may_share(message: &ChunkMessage) -> bool {
    message.delivery_mode == DeliveryMode::Fresh && message.is_range()
}

const fn place(message: &ChunkMessage) -> (JobGuid, ChunkAddress) {
    (message.job_guid, message.address)
}

impl SharedRead {
    /// A range of the shared one, which is read now if it has not been. `None` if that failed.
    async fn bytes(&self, objects: &dyn Objects, key: &str, etag: &str, range: &Range<u64>) -> Option<Bytes> {
        let start = usize::try_from(range.start.checked_sub(self.range.start)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(self.range.start)?).ok()?;
        // If the chunk that reads is given up, the next one reads in its place.
        let bytes = self.bytes.get_or_init(|| async {
            let read = objects.read_range(key, etag, self.range.clone()).await;
            // A shorter object was replaced: each chunk finds that out by itself.
            let whole = |bytes: &Bytes| bytes.len() as u64 == self.range.end - self.range.start;
            read.inspect_err(|error| tracing::debug!(%error, "shared read failed")).ok().filter(whole)
        });
        let bytes = bytes.await.as_ref()?;
        (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end))
    }
}

/// The bucket as a chunk sees it: ranges come from the read that it shares with its neighbours, if there is one.
pub(crate) struct SharedObjects<'a> {
    pub objects: &'a dyn Objects,
    pub shared: Option<&'a SharedRead>,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Objects for SharedObjects<'_> {
    async fn head(&self, key: &str) -> Result<ObjectHead, PortError> {
        self.objects.head(key).await
    }

    async fn read_range(&self, key: &str, etag: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        if let Some(shared) = self.shared
            && let Some(bytes) = shared.bytes(self.objects, key, etag, &range).await
        {
            return Ok(bytes);
        }
        self.objects.read_range(key, etag, range).await
    }

    async fn read(&self, key: &str) -> Result<Bytes, PortError> {
        self.objects.read(key).await
    }

    async fn put(&self, key: &str, content_type: &str, bytes: Bytes, sha256: Option<[u8; 32]>) -> PortResult<String> {
        self.objects.put(key, content_type, bytes, sha256).await
    }
}
