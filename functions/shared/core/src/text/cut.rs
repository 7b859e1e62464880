//! Cuts a file into chunks at record boundaries.
//!
//! For every file, dialect and set of limits:
//!
//! - The chunks depend only on these three. They do not depend on how the bytes arrive, nor on where cutting was
//!   resumed, as long as it was resumed at a boundary of the same cut.
//! - A chunk reaches from the start of its first record to the start of the first record of the next chunk: line ends
//!   and blank lines belong to the chunk before them. The exception is a run of blank lines that would make the chunk
//!   longer than [`ChunkLimits::max_bytes`]: the chunk ends at that byte. So every chunk fits in memory, even of a
//!   hostile file.
//! - Only a chunk with a single record can be longer than `max_bytes`.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::format::Dialect;
use super::scan::{RecordScanner, Span};

/// Must be increased whenever the same file, dialect and limits would be cut differently. A job stores the version that
/// it was cut with.
pub const SCANNER_VERSION: u32 = 1;

/// The maximum sizes of a chunk and of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkLimits {
    /// Maximum number of items in a chunk; 0 counts as 1.
    pub max_items: u32,
    /// Maximum size of a chunk with more than one record, in bytes.
    pub max_bytes: u64,
    /// Maximum size of a record without its terminator, in bytes. A longer record becomes a [`ChunkMode::TooLong`]
    /// chunk of its own.
    pub max_record_bytes: u64,
}

/// A boundary between two records of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// Number of bytes before it.
    pub offset: u64,
    /// The 1-based number of the next record.
    pub row: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChunkMode {
    /// Its items are read.
    Items,
    /// It is a single record over [`ChunkLimits::max_record_bytes`] and must not be read as a whole.
    TooLong,
}

/// A contiguous run of items.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chunk {
    /// Offset of its first record in the file, in bytes.
    pub offset: u64,
    /// Length in bytes, never 0.
    pub length: u64,
    /// The 1-based row of its first item.
    pub first_row: u64,
    /// Number of items, never 0.
    pub items: u32,
    pub mode: ChunkMode,
}

impl Chunk {
    /// The boundary before its first record.
    pub const fn start(&self) -> Position {
        Position { offset: self.offset, row: self.first_row }
    }

    /// The byte after it.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// The file ended inside a quoted cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "The quote that opens at byte {offset} of the file, in row {row}, is never closed. Close it, or write it twice if it \
     is part of the cell."
)]
pub struct UnterminatedQuote {
    /// The 1-based row of the record with the quote.
    pub row: u64,
    /// Offset of the opening quote in the file, in bytes.
    pub offset: u64,
}

/// Cuts a file into chunks. It gets the file slice by slice, and stores positions only, never bytes.
#[derive(Debug)]
pub struct ChunkCutter {
    scanner: RecordScanner,
    packer: Packer,
}

impl ChunkCutter {
    /// Starts at `from`: at the first record, or at the boundary after a chunk of an earlier cut.
    pub fn new(dialect: &Dialect, limits: ChunkLimits, from: Position) -> Self {
        Self {
            scanner: RecordScanner::new(dialect, from.offset),
            packer: Packer { limits, border: from, next_row: from.row, open: None },
        }
    }

    /// Takes the next bytes of the file and appends the chunks that are complete now.
    pub fn push(&mut self, bytes: &[u8], chunks: &mut Vec<Chunk>) {
        let packer = &mut self.packer;
        self.scanner.scan(bytes, |record| packer.add(record, chunks));
    }

    /// Ends the file: appends the last chunk and returns the position of the file's end.
    ///
    /// # Errors
    ///
    /// [`UnterminatedQuote`] if a quote is still open. The records before the broken one are in `chunks` in any case.
    pub fn finish(&mut self, chunks: &mut Vec<Chunk>) -> Result<Position, UnterminatedQuote> {
        match self.scanner.finish() {
            Ok(record) => {
                if let Some(record) = record {
                    self.packer.add(record, chunks);
                }
                let offset = self.scanner.offset();
                self.packer.close(offset, chunks);
                Ok(Position { offset, row: self.packer.next_row })
            }
            Err(quote) => {
                self.packer.close(quote.record_start, chunks);
                Err(UnterminatedQuote { row: self.packer.next_row, offset: quote.offset })
            }
        }
    }

    /// The ranges of the bytes so far that future chunks can contain: the open chunk, and the record that is being
    /// scanned. Bytes beyond the limits of a chunk or a record are not included.
    pub fn needed(&self, max_record_bytes: u64) -> [Range<u64>; 2] {
        let (border, record) = (self.packer.border.offset, self.scanner.record_start());
        let open = self.packer.open.map_or(border..border, |open| open.start..record.max(open.end));
        // `+ 2`: a line end has at most two bytes.
        let open =
            open.start..open.end.min(open.start.saturating_add(self.packer.limits.max_bytes.max(max_record_bytes) + 2));
        [open, record..record.saturating_add(max_record_bytes + 2)]
    }

    /// The boundary after the last complete chunk. Cutting can be resumed there.
    pub fn position(&self) -> Position {
        self.packer.border
    }
}

/// Collects records into chunks.
#[derive(Debug)]
struct Packer {
    limits: ChunkLimits,
    border: Position,
    next_row: u64,
    open: Option<OpenChunk>,
}

#[derive(Clone, Copy, Debug)]
struct OpenChunk {
    start: u64,
    /// End of its last record, including the terminator.
    end: u64,
    first_row: u64,
    items: u32,
    mode: ChunkMode,
}

impl Packer {
    #[inline]
    fn add(&mut self, record: Span, chunks: &mut Vec<Chunk>) {
        let too_long = record.content_end - record.start > self.limits.max_record_bytes;
        match &mut self.open {
            Some(open)
                if !too_long
                    && open.mode == ChunkMode::Items
                    && open.items < self.limits.max_items
                    && record.end - open.start <= self.limits.max_bytes =>
            {
                open.end = record.end;
                open.items += 1;
            }
            _ => {
                self.close(record.start, chunks);
                let mode = if too_long { ChunkMode::TooLong } else { ChunkMode::Items };
                self.open =
                    Some(OpenChunk { start: record.start, end: record.end, first_row: self.next_row, items: 1, mode });
            }
        }
        self.next_row += 1;
    }

    /// Appends the open chunk, if there is one, to `chunks`. The next record starts at `next_start`.
    fn close(&mut self, next_start: u64, chunks: &mut Vec<Chunk>) {
        let Some(open) = self.open.take() else { return };
        let blank_lines_to = open.start.saturating_add(self.limits.max_bytes).max(open.end);
        let end = next_start.min(blank_lines_to);
        chunks.push(Chunk {
            offset: open.start,
            length: end - open.start,
            first_row: open.first_row,
            items: open.items,
            mode: open.mode,
        });
        self.border = Position { offset: end, row: open.first_row + u64::from(open.items) };
    }
}
