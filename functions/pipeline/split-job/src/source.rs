//! Streams a file in ranges: the next range is in flight while the last one is scanned.

use std::sync::Arc;

use bytes::Bytes;
use rowmill_core::model::spec::SourceFile;
use rowmill_core::ports::{Objects, PortError};
use tokio::task::JoinSet;

/// Reads a file in ranges from a given byte to its end. Holds two ranges at most: the one handed out and the next.
pub struct SourceReader {
    objects: Arc<dyn Objects>,
    file: SourceFile,
    range_bytes: u64,
    next_offset: u64,
    // A set of at most one read. Dropping the reader cancels it.
    in_flight: JoinSet<Result<Bytes, PortError>>,
}

impl SourceReader {
    /// A reader of `file` from byte `offset` on.
    pub fn new(objects: Arc<dyn Objects>, file: SourceFile, offset: u64, range_bytes: u64) -> Self {
        let range_bytes = range_bytes.max(1);
        Self { objects, file, range_bytes, next_offset: offset, in_flight: JoinSet::new() }
    }

    /// The next range, or `None` at the end of the file.
    ///
    /// # Errors
    /// `NotFound` or `Changed` if the object was deleted or replaced since the job was created.
    pub async fn next(&mut self) -> Result<Option<Bytes>, PortError> {
        if self.in_flight.is_empty() {
            self.fetch();
        }
        let Some(read) = self.in_flight.join_next().await else { return Ok(None) };
        let bytes = read.map_err(|error| PortError::unavailable("reading the file", error))??;
        self.fetch();
        Ok(Some(bytes))
    }

    fn fetch(&mut self) {
        if self.next_offset >= self.file.size {
            return;
        }
        let end = self.next_offset.saturating_add(self.range_bytes).min(self.file.size);
        let range = self.next_offset..end;
        self.next_offset = end;
        let (objects, key, etag) = (Arc::clone(&self.objects), self.file.key.clone(), self.file.etag.clone());
        self.in_flight.spawn(async move {
            let wanted = range.end - range.start;
            let bytes = objects.read_range(&key, &etag, range).await?;
            // If the pinned object is shorter than before, it was replaced.
            if bytes.len() as u64 == wanted { Ok(bytes) } else { Err(PortError::Changed) }
        });
    }
}
