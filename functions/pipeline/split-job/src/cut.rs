//! Cuts an upload of plain text into chunks, a tally at a time.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use rowmill_core::model::chunk_index::{IndexedPart, RecordPosition};
use rowmill_core::model::files::FilePosition;
use rowmill_core::model::job::{Stop, StopCode};
use rowmill_core::model::warnings::{self, Warning};
use rowmill_core::ports::{Clock, PortError};
use rowmill_core::text::{Chunk, ChunkCutter, ChunkLimits, Dialect, Position, UnterminatedQuote, Utf8Watch};
use rowmill_formats::SourceReader;

/// The most bytes of stored text in a tally; they are held in memory. A tally ends with the chunk that reaches this.
pub const STORED_TALLY_BYTES: usize = 64 * 1024 * 1024;

/// The chunks of the next tally.
#[derive(Debug, Default)]
pub struct CutTally {
    /// Up to 64 chunks; none at the end.
    pub chunks: Vec<Chunk>,
    /// The items of each chunk, if they are not a range of the upload.
    pub inputs: Vec<Bytes>,
    /// The row of the last item, if the items are not contiguous.
    pub last_row: u64,
    /// More about chunks that are objects in the first attempt.
    pub stored: Option<StoredCut>,
    /// In a job over many files: where the chunks come from.
    pub parts: Vec<IndexedPart>,
}

/// The chunks that the split stores, for the chunk index.
#[derive(Debug, Default)]
pub struct StoredCut {
    /// The weight of each chunk in the job's percent.
    pub weights: Vec<u64>,
    /// Where to read the dataset on after them.
    pub next: Option<RecordPosition>,
    /// Where to read the files on after them.
    pub next_file: Option<FilePosition>,
}

/// Why there are no chunks.
#[derive(Debug)]
pub enum CutError {
    /// The input cannot be cut any further.
    Stopped(Stop),
    /// The next border is too far away for this invocation.
    OutOfTime,
    Port(PortError),
}

/// The text of a file that needs no unpacking.
pub enum PlainText {
    Read(SourceReader),
    /// It was read as a whole before.
    Whole(Option<Bytes>),
}

impl PlainText {
    async fn next(&mut self) -> Result<Option<Bytes>, PortError> {
        match self {
            Self::Read(reader) => reader.next().await,
            Self::Whole(bytes) => Ok(bytes.take()),
        }
    }
}

/// The upload, cut by its scanner.
pub struct FileCut {
    clock: Arc<dyn Clock>,
    text: PlainText,
    cutter: ChunkCutter,
    utf8: Utf8Watch,
    /// Chunks that are cut and not returned yet.
    ready: Vec<Chunk>,
    /// Why the stream ended: the end of the file, or a reason to stop that applies after the chunks before it.
    ended: Option<Option<Stop>>,
}

impl FileCut {
    /// Begins at this border, where the text begins too.
    pub fn new(
        text: PlainText,
        clock: Arc<dyn Clock>,
        (dialect, limits): (&Dialect, ChunkLimits),
        start: Position,
    ) -> Self {
        Self {
            clock,
            text,
            cutter: ChunkCutter::new(dialect, limits, start),
            utf8: Utf8Watch::from(start.offset),
            ready: Vec::new(),
            ended: None,
        }
    }

    /// The next chunks, at most so many. Fewer at the end of the file, none after it.
    pub async fn next(&mut self, most: usize, time_limit: Timestamp) -> Result<CutTally, CutError> {
        while self.ready.len() < most && self.ended.is_none() {
            if self.clock.now() >= time_limit {
                return Err(CutError::OutOfTime);
            }
            match self.text.next().await {
                Ok(Some(bytes)) => {
                    self.utf8.push(&bytes);
                    self.cutter.push(&bytes, &mut self.ready);
                }
                Ok(None) => {
                    self.utf8.finish();
                    let quote = self.cutter.finish(&mut self.ready).err();
                    self.ended = Some(quote.map(|quote| never_closed(quote, self.clock.now())));
                }
                Err(PortError::NotFound) => return Err(self.source_changed("is gone")),
                Err(PortError::Changed) => return Err(self.source_changed("was replaced")),
                Err(error) => return Err(CutError::Port(error)),
            }
        }
        if self.ready.is_empty()
            && let Some(Some(stop)) = self.ended.take()
        {
            return Err(CutError::Stopped(stop));
        }
        let count = self.ready.len().min(most);
        let rest = self.ready.split_off(count);
        Ok(CutTally { chunks: std::mem::replace(&mut self.ready, rest), ..CutTally::default() })
    }

    /// Warnings for the owner of the job about the text so far.
    pub fn warnings(&self) -> Vec<Warning> {
        self.utf8.found().map(|(byte, likely)| warnings::not_utf8(byte, likely)).into_iter().collect()
    }

    fn source_changed(&self, how: &str) -> CutError {
        CutError::Stopped(Stop::source_changed(how, None, self.clock.now()))
    }
}

/// The stop for a file that ends within a quoted cell.
pub fn never_closed(quote: UnterminatedQuote, at: Timestamp) -> Stop {
    let UnterminatedQuote { row, offset } = quote;
    let message = format!("the quote opened in row {row} (byte {offset}) is never closed; close it and upload again");
    Stop { code: StopCode::UnterminatedQuote, message, row: Some(row), offset: Some(offset), at }
}
