//! Connects the synchronous decoders with the asynchronous functions.
//!
//! A decoder runs in a thread of its own. It reads the object in ranges and sends its blocks through a small bounded
//! channel, so the faster side waits for the slower one.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use rowmill_core::model::files::ZipMember;
use rowmill_core::model::packing::Packing;
use rowmill_core::model::spec::SourceFile;
use rowmill_core::ports::{Objects, PortError, patience};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::members::members;
use crate::{DecodeError, Decoded, Limits, ReadAhead, SourceReader, decode_file};

/// Size of one read of a file.
pub const RANGE_BYTES: u64 = 2 * 1024 * 1024;

/// Capacity of the channel, in blocks.
const BLOCKS_WAITING: usize = 4;

/// The text of a packed upload, as a stream of blocks.
pub struct TextStream {
    pieces: mpsc::Receiver<Result<Piece, DecodeError>>,
    decoded: Decoded,
}

/// A message of the decoder's thread.
enum Piece {
    Text(TextBlock),
    End(Decoded),
}

/// A piece of the decoded text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextBlock {
    /// The text. It can end anywhere, even inside a record or a character.
    pub bytes: Bytes,
    /// Number of consumed bytes of the upload, see [`Block`](crate::Block).
    pub consumed: u64,
}

impl TextStream {
    /// Starts to decode this upload, of which up to `reads` ranges of 2 MiB are read at once. Must be called within a
    /// tokio runtime.
    pub fn open(objects: Arc<dyn Objects>, file: &SourceFile, packing: &Packing, limits: Limits, reads: usize) -> Self {
        let (sender, pieces) = mpsc::channel(BLOCKS_WAITING);
        let (object, packing) = (ObjectReader::new(objects, file.clone(), reads), packing.clone());
        tokio::task::spawn_blocking(move || {
            let sink = |block: crate::Block<'_>| {
                let block = TextBlock { bytes: Bytes::copy_from_slice(block.bytes), consumed: block.consumed };
                match sender.blocking_send(Ok(Piece::Text(block))) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            };
            let decoded = decode_file(&packing, object, &limits, sink);
            // The receiver may be gone.
            sender.blocking_send(decoded.map(Piece::End)).ok();
        });
        Self { pieces, decoded: Decoded::default() }
    }

    /// The text of a file that was read to its end before.
    pub fn whole(text: Bytes, consumed: u64) -> Self {
        let (sender, pieces) = mpsc::channel(2);
        let block = (!text.is_empty()).then_some(Piece::Text(TextBlock { bytes: text, consumed }));
        for piece in block.into_iter().chain([Piece::End(Decoded::default())]) {
            // There is room for both.
            sender.try_send(Ok(piece)).ok();
        }
        Self { pieces, decoded: Decoded::default() }
    }

    /// The next block; `None` at the end.
    ///
    /// # Errors
    /// See [`DecodeError`]. [`port_error`] extracts the errors of reading the object.
    pub async fn next(&mut self) -> Result<Option<TextBlock>, DecodeError> {
        Ok(match self.pieces.recv().await.transpose()? {
            Some(Piece::Text(block)) => Some(block),
            Some(Piece::End(decoded)) => {
                self.decoded = decoded;
                None
            }
            None => None,
        })
    }

    /// Notes on the file. Known once [`next`](Self::next) has returned `None`.
    pub const fn decoded(&self) -> Decoded {
        self.decoded
    }
}

/// The files in a zip archive, with their names, in the order of its directory.
///
/// # Errors
/// See [`DecodeError`]. [`port_error`] extracts the errors of reading the object.
pub async fn zip_members(
    objects: Arc<dyn Objects>,
    file: &SourceFile,
    limits: Limits,
) -> Result<Vec<(String, ZipMember)>, DecodeError> {
    let object = ObjectReader::new(objects, file.clone(), 1);
    let read = tokio::task::spawn_blocking(move || members(object, &limits));
    read.await.unwrap_or_else(|error| Err(DecodeError::Source(io::Error::other(error))))
}

/// Extracts the error of reading the object behind a [`TextStream`]. Returns all errors about the object's content
/// unchanged.
pub fn port_error(error: DecodeError) -> Result<PortError, DecodeError> {
    match error {
        DecodeError::Source(error) => Ok(match error.downcast::<PortError>() {
            Ok(error) => error,
            Err(error) => PortError::unavailable("reading the upload", error),
        }),
        error => Err(error),
    }
}

/// A random-access reader of an object. Its thread may block.
struct ObjectReader {
    objects: Arc<dyn Objects>,
    file: SourceFile,
    ahead: ReadAhead,
    runtime: Handle,
    /// That of the place where it was made.
    patience: Option<Instant>,
    at: u64,
    /// The last range read: its offset and its bytes.
    range: (u64, Bytes),
    /// Reads on behind it.
    reader: SourceReader,
}

impl ObjectReader {
    fn new(objects: Arc<dyn Objects>, file: SourceFile, reads: usize) -> Self {
        let ahead = ReadAhead { range_bytes: RANGE_BYTES, reads };
        let reader = SourceReader::careful(Arc::clone(&objects), file.clone(), 0, ahead);
        let (runtime, patience) = (Handle::current(), patience::current());
        Self { objects, file, ahead, runtime, patience, at: 0, range: (0, Bytes::new()), reader }
    }

    /// The bytes in memory from the current position on.
    fn buffered(&self) -> &[u8] {
        let (start, bytes) = &self.range;
        let skipped = self.at.checked_sub(*start).and_then(|skipped| usize::try_from(skipped).ok());
        skipped.and_then(|skipped| bytes.get(skipped..)).unwrap_or_default()
    }
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.file.size || buffer.is_empty() {
            return Ok(0);
        }
        if self.buffered().is_empty() {
            // Not held beside the next ranges.
            self.range = (0, Bytes::new());
            if self.reader.offset() != self.at {
                // A workbook or a Parquet file is read here and there: what was read ahead elsewhere is of no use.
                let (objects, file) = (Arc::clone(&self.objects), self.file.clone());
                self.reader = SourceReader::careful(objects, file, self.at, self.ahead);
            }
            let next = patience::of(self.patience, self.reader.next());
            let bytes = self.runtime.block_on(next).map_err(io::Error::other)?;
            self.range = (self.at, bytes.unwrap_or_default());
        }
        let buffered = self.buffered();
        let count = buffered.len().min(buffer.len());
        buffer[..count].copy_from_slice(&buffered[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for ObjectReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(distance) => self.file.size.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.at.checked_add_signed(distance),
        };
        self.at = place.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "seek to a position before the start of the file")
        })?;
        Ok(self.at)
    }
}
