//! Cuts an upload of plain text into chunks, a tally at a time.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use rowmill_core::model::chunk_index::RecordPosition;
use rowmill_core::model::job::{Stop, StopCode};
use rowmill_core::model::spec::{SourceFile, Spec};
use rowmill_core::model::tally::CHUNKS_PER_TALLY;
use rowmill_core::model::warnings::{self, Warning};
use rowmill_core::ports::{Clock, Objects, PortError};
use rowmill_core::text::{Chunk, ChunkCutter, Position, UnterminatedQuote, Utf8Watch};
use rowmill_formats::{ReadAhead, SourceReader};

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
}

/// The chunks that the split stores, for the chunk index.
#[derive(Debug, Default)]
pub struct StoredCut {
    /// The weight of each chunk in the job's percent.
    pub weights: Vec<u64>,
    /// Where to read the dataset on after them.
    pub next: Option<RecordPosition>,
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

/// The upload, cut by its scanner.
pub struct FileCut {
    clock: Arc<dyn Clock>,
    reader: SourceReader,
    cutter: ChunkCutter,
    utf8: Utf8Watch,
    /// Chunks that are cut and not returned yet.
    ready: Vec<Chunk>,
    /// Why the stream ended: the end of the file, or a reason to stop that applies after the chunks before it.
    ended: Option<Option<Stop>>,
}

impl FileCut {
    /// Begins at this border.
    pub fn new(
        objects: Arc<dyn Objects>,
        clock: Arc<dyn Clock>,
        spec: &Spec,
        file: &SourceFile,
        start: Position,
        ahead: ReadAhead,
    ) -> Self {
        Self {
            clock,
            reader: SourceReader::new(objects, file.clone(), start.offset, ahead),
            cutter: ChunkCutter::new(&spec.head.dialect, spec.limits, start),
            utf8: Utf8Watch::from(start.offset),
            ready: Vec::new(),
            ended: None,
        }
    }

    /// The next 64 chunks. Fewer at the end of the file, none after it.
    pub async fn next_tally(&mut self, time_limit: Timestamp) -> Result<CutTally, CutError> {
        while self.ready.len() < CHUNKS_PER_TALLY && self.ended.is_none() {
            if self.clock.now() >= time_limit {
                return Err(CutError::OutOfTime);
            }
            match self.reader.next().await {
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
        let count = self.ready.len().min(CHUNKS_PER_TALLY);
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
