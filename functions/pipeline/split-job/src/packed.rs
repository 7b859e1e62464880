//! Cuts the text of a packed upload into chunks, and stores them on the way.
//!
//! A packed upload cannot be read from the middle, so a resumed split decodes it from its beginning and passes over the
//! text that is cut already. The text and its chunks are the same every time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use rowmill_core::model::job::{Stop, StopCode};
use rowmill_core::model::packing::Packing;
use rowmill_core::model::warnings::{self, Warning};
use rowmill_core::ports::{Clock, PortError};
use rowmill_core::text::{Chunk, ChunkCutter, ChunkLimits, ChunkMode, Dialect, Position, Utf8Watch};
use rowmill_formats::{DecodeError, TextBlock, TextStream, port_error};

use crate::cut::{CutError, CutTally, StoredCut, never_closed};

pub struct PackedCut {
    clock: Arc<dyn Clock>,
    text: TextStream,
    cutter: ChunkCutter,
    /// Watches text that is compressed only.
    utf8: Option<Utf8Watch>,
    max_record_bytes: u64,
    /// Number of bytes of the text that have been read.
    read_to: u64,
    /// Where cutting begins. Another run cut the text before it.
    start: u64,
    /// Pieces of the text that chunks may need, each with its start.
    held: VecDeque<(u64, TextBlock)>,
    /// Chunks that are cut and not returned yet, with their text and weights.
    ready: VecDeque<(Chunk, Bytes, u64)>,
    /// The bytes of their text.
    ready_bytes: usize,
    /// Number of bytes of the upload that are counted for the chunks so far.
    weighed: u64,
    /// Why the text ended: its end, or a reason to stop that applies once the chunks before it are returned.
    ended: Option<Option<Stop>>,
}

impl PackedCut {
    /// Begins at this border of the text of a file that is packed like this.
    pub fn new(
        (text, packing): (TextStream, &Packing),
        clock: Arc<dyn Clock>,
        (dialect, chunk_limits): (&Dialect, ChunkLimits),
        start: Position,
    ) -> Self {
        Self {
            clock,
            text,
            cutter: ChunkCutter::new(dialect, chunk_limits, start),
            utf8: packing.is_utf8().then(|| Utf8Watch::from(start.offset)),
            max_record_bytes: chunk_limits.max_record_bytes,
            read_to: 0,
            start: start.offset,
            held: VecDeque::new(),
            ready: VecDeque::new(),
            ready_bytes: 0,
            weighed: 0,
            ended: None,
        }
    }

    /// The next chunks, at most so many, of about so many bytes. Fewer if the text ends; none after its end.
    pub async fn next(
        &mut self,
        (most, most_bytes): (usize, usize),
        time_limit: Timestamp,
    ) -> Result<CutTally, CutError> {
        let is_full = |cut: &Self| cut.ready.len() >= most || cut.ready_bytes >= most_bytes;
        while !is_full(self) && self.ended.is_none() {
            if self.clock.now() >= time_limit {
                return Err(CutError::OutOfTime);
            }
            match self.text.next().await {
                Ok(Some(block)) => self.push(block),
                Ok(None) => self.end_of_text(),
                Err(error) => self.stop_for(error)?,
            }
        }
        if self.ready.is_empty()
            && let Some(Some(stop)) = self.ended.take()
        {
            return Err(CutError::Stopped(stop));
        }
        let (mut tally, mut stored, mut bytes) = (CutTally::default(), StoredCut::default(), 0);
        while tally.chunks.len() < most
            && bytes < most_bytes
            && let Some((chunk, text, weight)) = self.ready.pop_front()
        {
            bytes += text.len();
            tally.chunks.push(chunk);
            tally.inputs.push(text);
            stored.weights.push(weight);
        }
        self.ready_bytes -= bytes;
        tally.stored = Some(stored);
        Ok(tally)
    }

    fn push(&mut self, block: TextBlock) {
        let place = self.read_to;
        self.read_to += block.bytes.len() as u64;
        if self.read_to <= self.start {
            self.weighed = block.consumed;
            return;
        }
        let passed_over = usize::try_from(self.start.saturating_sub(place)).unwrap_or(usize::MAX);
        let block = TextBlock { bytes: block.bytes.slice(passed_over.min(block.bytes.len())..), ..block };
        if let Some(utf8) = &mut self.utf8 {
            utf8.push(&block.bytes);
        }
        let mut chunks = Vec::new();
        self.cutter.push(&block.bytes, &mut chunks);
        self.held.push_back((place.max(self.start), block));
        self.take(chunks);
        let needed = self.cutter.needed(self.max_record_bytes);
        self.held.retain(|(place, block)| {
            let end = place + block.bytes.len() as u64;
            needed.iter().any(|range| *place < range.end && range.start < end)
        });
    }

    /// Warnings for the owner of the job about the file, as far as it is read.
    pub fn warnings(&self) -> Vec<Warning> {
        let found = self.utf8.as_ref().and_then(Utf8Watch::found);
        let not_utf8 = found.map(|(byte, likely)| warnings::not_utf8(byte, likely));
        not_utf8.into_iter().chain(self.text.decoded().ignored_from.map(warnings::trailing_bytes)).collect()
    }

    fn end_of_text(&mut self) {
        if let Some(utf8) = &mut self.utf8 {
            utf8.finish();
        }
        let mut chunks = Vec::new();
        let quote = self.cutter.finish(&mut chunks).err();
        self.take(chunks);
        self.ended = Some(quote.map(|quote| never_closed(quote, self.clock.now())));
    }

    /// The text ends early. Chunks cut before count; the bytes after the last border belong to no chunk.
    fn stop_for(&mut self, error: DecodeError) -> Result<(), CutError> {
        let at = self.clock.now();
        self.ended = Some(Some(match port_error(error) {
            Ok(PortError::NotFound) => Stop::source_changed("is gone", None, at),
            Ok(PortError::Changed) => Stop::source_changed("was replaced", None, at),
            Ok(error) => return Err(CutError::Port(error)),
            Err(error) => Stop::because(StopCode::UnreadableFile, error.to_string(), at),
        }));
        Ok(())
    }

    fn take(&mut self, chunks: Vec<Chunk>) {
        for chunk in chunks {
            let range = chunk.offset..chunk.offset + chunk.length;
            let consumed = self.held.iter().find(|(place, block)| place + block.bytes.len() as u64 >= range.end);
            let consumed = consumed.map_or(self.weighed, |(_, block)| block.consumed);
            // A record too long to be an item is never read.
            let text = if chunk.mode == ChunkMode::TooLong { Bytes::new() } else { self.text_of(&range) };
            self.ready_bytes += text.len();
            self.ready.push_back((chunk, text, consumed.saturating_sub(self.weighed)));
            self.weighed = self.weighed.max(consumed);
        }
    }

    fn text_of(&self, range: &Range<u64>) -> Bytes {
        let mut text = Vec::with_capacity(usize::try_from(range.end - range.start).unwrap_or(0));
        for (place, block) in &self.held {
            let end = place + block.bytes.len() as u64;
            let (from, to) = (range.start.max(*place), range.end.min(end));
            if from < to {
                text.extend_from_slice(&block.bytes[(from - place) as usize..(to - place) as usize]);
            }
        }
        text.into()
    }
}
