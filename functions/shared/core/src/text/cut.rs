//! Cutting a file into chunks on record borders.
//!
//! What holds for every file, dialect and set of limits:
//!
//! - Chunks depend on nothing but these three: not on how the bytes arrive, nor on where cutting was resumed, as long as
//!   it is resumed at a border of the same cut.
//! - A chunk reaches from the start of its first record to the start of the next chunk's first record: line ends and
//!   blank lines belong to the chunk before them. Only a run of blank lines that would take the chunk past
//!   [`ChunkLimits::max_bytes`] is left outside at that byte, so that a chunk always fits in memory whoever wrote the
//!   file.
//! - Only a chunk of one single record is longer than `max_bytes`.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::format::Dialect;
use super::scan::{RecordScanner, Span};

/// Goes up whenever the same file, dialect and limits would be cut differently. A job keeps the version it was cut with.
pub const SCANNER_VERSION: u32 = 1;

/// How big a chunk and a record may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkLimits {
    /// Items in a chunk; 0 is taken as 1.
    pub max_items: u32,
    /// Bytes in a chunk of more than one record.
    pub max_bytes: u64,
    /// Bytes in a record, its terminator left out. A longer one is a [`ChunkMode::TooLong`] chunk of its own.
    pub max_record_bytes: u64,
}

/// A place between two records of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// Bytes before it.
    pub offset: u64,
    /// Number of the next record, the first one being 1.
    pub row: u64,
}

/// What is to be done with a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChunkMode {
    /// Read its items.
    Items,
    /// It is one record over [`ChunkLimits::max_record_bytes`], not to be read whole.
    TooLong,
}

/// A contiguous run of items.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chunk {
    /// Offset of its first record in the file.
    pub offset: u64,
    /// Bytes up to its end, never 0.
    pub length: u64,
    /// Row of its first item.
    pub first_row: u64,
    /// Items in it, never 0.
    pub items: u32,
    /// How to treat it.
    pub mode: ChunkMode,
}

impl Chunk {
    /// The border before its first record.
    pub const fn start(&self) -> Position {
        Position { offset: self.offset, row: self.first_row }
    }
}

/// The file ended inside a quoted cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "The quote that opens at byte {offset} of the file, in row {row}, is never closed. Close it, or double it if it is \
     part of the cell."
)]
pub struct UnterminatedQuote {
    /// Row of the record the quote is in.
    pub row: u64,
    /// Offset of the opening quote in the file.
    pub offset: u64,
}

/// Cuts a file, fed to it slice by slice, into chunks. It keeps positions only, never bytes.
#[derive(Debug)]
pub struct ChunkCutter {
    scanner: RecordScanner,
    packer: Packer,
}

impl ChunkCutter {
    /// Starts at `from`: where the first record begins, or the border after a chunk of an earlier cut.
    pub fn new(dialect: &Dialect, limits: ChunkLimits, from: Position) -> Self {
        Self {
            scanner: RecordScanner::new(dialect, from.offset),
            packer: Packer { limits, border: from, next_row: from.row, open: None },
        }
    }

    /// Feeds the next bytes of the file and appends the chunks that are complete by now.
    pub fn push(&mut self, bytes: &[u8], chunks: &mut Vec<Chunk>) {
        let packer = &mut self.packer;
        self.scanner.scan(bytes, |record| packer.add(record, chunks));
    }

    /// The file ends here: appends the last chunk and answers with the file's end.
    ///
    /// # Errors
    ///
    /// [`UnterminatedQuote`] if a quote is still open. The records before the broken one are in `chunks` all the same.
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

    /// What of the bytes fed so far chunks to come may hold: the open one, and the record that is being scanned, unless
    /// it is over the limit.
    pub fn needed(&self, max_record_bytes: u64) -> [Range<u64>; 2] {
        let (border, record) = (self.packer.border.offset, self.scanner.record_start());
        let open = self.packer.open.map_or(border..border, |open| open.start..record.max(open.end));
        // Line ends included, which take two bytes at most.
        let open =
            open.start..open.end.min(open.start.saturating_add(self.packer.limits.max_bytes.max(max_record_bytes) + 2));
        [open, record..record.saturating_add(max_record_bytes + 2)]
    }

    /// The border after the last chunk handed out, from which cutting can be resumed.
    pub fn position(&self) -> Position {
        self.packer.border
    }
}

/// Gathers records into chunks.
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
    /// End of its last record, terminator included.
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

    /// Hands out the open chunk, if any; the next record begins at `next_start`.
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
