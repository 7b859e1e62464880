//! The text of a job's upload, read again.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use rowmill_core::items::skipped::SkippedChunk;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::keys;
use rowmill_core::model::packing::Packing;
use rowmill_core::model::spec::{Source, SourceFile, Spec};
use rowmill_core::ports::{Objects, PortError};
use rowmill_core::text::{Chunk, read_items};
use rowmill_formats::{DecodeError, Limits, ReadAhead, SourceReader, TextStream, port_error};

/// Reads of the upload ahead of the part that is being sent.
const AHEAD: ReadAhead = ReadAhead { range_bytes: 4 * 1024 * 1024, reads: 2 };

pub struct InputText<'a> {
    /// The upload, and the text of chunks that are not a range of it.
    pub objects: &'a Arc<dyn Objects>,
    pub spec: &'a Spec,
    /// The limits of a packed upload.
    pub packed: Limits,
}

/// A range of the upload that was read.
#[derive(Default)]
pub struct ReadRange {
    start: u64,
    bytes: Bytes,
}

impl ReadRange {
    /// The bytes of a chunk, if it is within the range.
    fn of(&self, chunk: &Chunk) -> Option<Bytes> {
        let from = usize::try_from(chunk.offset.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(chunk.end() - self.start).ok()?;
        (to <= self.bytes.len()).then(|| self.bytes.slice(from..to))
    }
}

/// Why the rest of the text cannot be read.
#[derive(Debug)]
pub enum TextError {
    /// The packed upload is damaged, or expands beyond its limits.
    Unreadable(DecodeError),
    /// A port failed: `NotFound` or `Changed` if the upload is gone or was replaced.
    Port(PortError),
}

impl InputText<'_> {
    /// The header of the input, if it has one.
    ///
    /// # Errors
    /// `NotFound` or `Changed` if the upload is gone or was replaced; `Unavailable`.
    pub async fn header(&self) -> Result<Vec<u8>, PortError> {
        let (mut text, mut header) = (self.range(0..self.spec.head.data_start), Vec::new());
        while let Some(bytes) = text.next().await {
            match bytes {
                Ok(bytes) => header.extend_from_slice(&bytes),
                // It was readable when the job was created.
                Err(TextError::Unreadable(_)) => return Err(PortError::Changed),
                Err(TextError::Port(error)) => return Err(error),
            }
        }
        Ok(header)
    }

    /// The rows of a chunk that were skipped. If they are not in `read`, a range from the chunk up to `end` is read
    /// into it.
    pub async fn skipped(
        &self,
        job: JobGuid,
        skipped: &SkippedChunk,
        read: &mut ReadRange,
        end: u64,
    ) -> Result<Bytes, PortError> {
        let SkippedChunk { address, chunk, stored_by, rows, .. } = skipped;
        let text = match (*stored_by, self.spec.source.file()) {
            (Some(by), _) => self.objects.read(&keys::stored_text(job, *address, by)).await?,
            (None, Some(file)) => match read.of(chunk) {
                Some(text) => text,
                None => {
                    let bytes = self.objects.read_range(&file.key, &file.etag, chunk.offset..end).await?;
                    *read = ReadRange { start: chunk.offset, bytes };
                    // A shorter object is not the one that was cut.
                    read.of(chunk).ok_or(PortError::Changed)?
                }
            },
            (None, None) => return Err(PortError::NotFound),
        };
        if rows.start == chunk.first_row {
            return Ok(text);
        }
        let columns: Arc<[String]> = self.spec.head.columns.clone().into();
        let first = read_items(chunk, &text, &self.spec.head.dialect, &columns).find(|item| item.row >= rows.start);
        let start = first.map_or(text.len(), |item| (item.offset - chunk.offset) as usize);
        Ok(text.slice(start..))
    }

    /// The text of a range, a piece at a time. An empty piece stands for decoded text before the range.
    pub fn range(&self, range: Range<u64>) -> BoxStream<'static, Result<Bytes, TextError>> {
        let objects = Arc::clone(self.objects);
        match &self.spec.source {
            Source::File(file) => file_text(objects, file, range),
            Source::Packed { file, packing } => packed_text(objects, file, packing, self.packed, range),
            Source::Dataset { .. } | Source::Files(_) | Source::Awaited(_) => stream::empty().boxed(),
        }
    }
}

fn file_text(
    objects: Arc<dyn Objects>,
    file: &SourceFile,
    range: Range<u64>,
) -> BoxStream<'static, Result<Bytes, TextError>> {
    let file = SourceFile { size: file.size.min(range.end), ..file.clone() };
    let reader = SourceReader::new(objects, file, range.start, AHEAD);
    let next = |reader: Option<SourceReader>| async move {
        let mut reader = reader?;
        let read = reader.next().await.map_err(TextError::Port).transpose()?;
        let rest = read.is_ok().then_some(reader);
        Some((read, rest))
    };
    stream::unfold(Some(reader), next).boxed()
}

fn packed_text(
    objects: Arc<dyn Objects>,
    file: &SourceFile,
    packing: &Packing,
    limits: Limits,
    range: Range<u64>,
) -> BoxStream<'static, Result<Bytes, TextError>> {
    let text = TextStream::open(objects, file, packing, limits, AHEAD.reads);
    let next = move |(mut text, at): (TextStream, u64)| {
        let (start, end) = (range.start, range.end);
        async move {
            if at >= end {
                return None;
            }
            match text.next().await {
                Ok(block) => {
                    let bytes = block?.bytes;
                    let behind = at + bytes.len() as u64;
                    let from = start.clamp(at, behind) - at;
                    let to = end.min(behind) - at;
                    Some((Ok(bytes.slice(from as usize..to.max(from) as usize)), (text, behind)))
                }
                Err(error) => {
                    let error = port_error(error).map_or_else(TextError::Unreadable, TextError::Port);
                    Some((Err(error), (text, end)))
                }
            }
        }
    };
    stream::unfold((text, 0), next).boxed()
}
