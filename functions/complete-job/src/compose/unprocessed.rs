//! What a stopped job did not process, as a file that a new job can run over: the input's header, the rows that were
//! skipped, and everything that was never dispatched, byte for byte.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use rowmill_core::ids::JobGuid;
use rowmill_core::input::stored_text_key;
use rowmill_core::packing::Packing;
use rowmill_core::ports::{Objects, PortError};
use rowmill_core::skipped_items::SkippedChunk;
use rowmill_core::spec::{Source, SourceFile, Spec};
use rowmill_core::text::{ChunkMode, read_items};
use rowmill_formats::{Limits, TextStream, port_error};

/// How much of the upload is read at once.
const RANGE_BYTES: u64 = 4 * 1024 * 1024;

/// The text of the rows of a stopped job that it did not process.
pub struct SkippedRows<'a> {
    /// The upload, and what the job left.
    pub objects: &'a Arc<dyn Objects>,
    /// The job.
    pub job_guid: JobGuid,
    /// What it is.
    pub spec: &'a Spec,
}

impl SkippedRows<'_> {
    /// The bytes of these rows, a range at a time.
    ///
    /// # Errors
    /// `NotFound` or `Changed` where the upload is gone or replaced; `Unavailable`.
    pub async fn text(
        &self,
        skipped: &SkippedChunk,
    ) -> Result<BoxStream<'static, Result<Bytes, PortError>>, PortError> {
        let SkippedChunk { address, chunk, stored_by, rows } = skipped;
        let range = chunk.offset..chunk.offset + chunk.length;
        let whole = match (*stored_by, self.spec.source.file()) {
            (Some(by), _) => self.objects.read(&stored_text_key(self.job_guid, *address, by)).await?,
            (None, None) => return Err(PortError::NotFound),
            (None, Some(file)) if chunk.mode == ChunkMode::TooLong || rows.start == chunk.first_row => {
                return Ok(ranges(Arc::clone(self.objects), file, range));
            }
            (None, Some(file)) => self.objects.read_range(&file.key, &file.etag, range).await?,
        };
        let columns: Arc<[String]> = self.spec.head.columns.clone().into();
        let first = read_items(chunk, &whole, &self.spec.head.dialect, &columns).find(|item| item.row >= rows.start);
        let start = first.map_or(whole.len(), |item| (item.offset - chunk.offset) as usize);
        Ok(stream::iter([Ok(whole.slice(start..))]).boxed())
    }

    /// The header of the input, if it has one.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub async fn header(&self) -> Result<Vec<u8>, PortError> {
        match &self.spec.source {
            Source::File(file) if self.spec.head.data_start > 0 => {
                let header = self.objects.read_range(&file.key, &file.etag, 0..self.spec.head.data_start).await?;
                Ok(header.to_vec())
            }
            Source::Packed { file, packing } if self.spec.head.data_start > 0 => {
                let mut text = packed_text(self.objects, file, packing, 0..self.spec.head.data_start);
                let mut header = Vec::new();
                while let Some(bytes) = text.next().await {
                    header.extend_from_slice(&bytes?);
                }
                Ok(header)
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// What an upload holds from one place to another: a range of it, or where it is packed a range of its text.
pub fn source_text(
    objects: &Arc<dyn Objects>,
    source: &Source,
    range: Range<u64>,
) -> BoxStream<'static, Result<Bytes, PortError>> {
    match source {
        Source::File(file) => ranges(Arc::clone(objects), file, range),
        Source::Packed { file, packing } => packed_text(objects, file, packing, range),
        Source::Dataset { .. } => stream::empty().boxed(),
    }
}

/// A range of the text of a packed upload, which is decoded from its beginning. What cannot be decoded ends it.
fn packed_text(
    objects: &Arc<dyn Objects>,
    file: &SourceFile,
    packing: &Packing,
    range: Range<u64>,
) -> BoxStream<'static, Result<Bytes, PortError>> {
    let text = TextStream::open(Arc::clone(objects), file, packing, Limits::default());
    let next = move |(mut text, at): (TextStream, u64)| {
        let (start, end) = (range.start, range.end);
        async move {
            let mut at = at;
            while at < end {
                let block = match text.next().await {
                    Ok(block) => block?.bytes,
                    Err(error) => return port_error(error).ok().map(|error| (Err(error), (text, end))),
                };
                let place = at;
                at += block.len() as u64;
                if at > start {
                    let from = (start.max(place) - place) as usize;
                    let to = (end.min(at) - place) as usize;
                    return Some((Ok(block.slice(from..to)), (text, at)));
                }
            }
            None
        }
    };
    stream::unfold((text, 0), next).boxed()
}

/// The bytes of an upload from one place to another, a range at a time.
fn ranges(
    objects: Arc<dyn Objects>,
    file: &SourceFile,
    range: Range<u64>,
) -> BoxStream<'static, Result<Bytes, PortError>> {
    let (key, etag) = (file.key.clone(), file.etag.clone());
    let next = move |at: u64| {
        let (objects, key, etag, end) = (Arc::clone(&objects), key.clone(), etag.clone(), range.end);
        async move {
            if at >= end {
                return None;
            }
            let next = (at + RANGE_BYTES).min(end);
            let read = objects.read_range(&key, &etag, at..next).await;
            let failed = read.is_err();
            Some((read, if failed { end } else { next }))
        }
    };
    stream::unfold(range.start, next).boxed()
}
