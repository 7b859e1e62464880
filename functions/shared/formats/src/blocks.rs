//! Collects decoded text into blocks and passes them to the caller.

use std::ops::ControlFlow;

use crate::error::DecodeError;
use crate::watch::Watch;

pub const BLOCK_MAX_BYTES: usize = 256 * 1024;

/// A piece of the decoded text. It can end anywhere, even inside a record or a character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block<'a> {
    /// The text, of 1 to [`BLOCK_MAX_BYTES`] bytes.
    pub bytes: &'a [u8],
    /// Number of consumed bytes of the file. It never decreases, and reaches the size of the file with the last
    /// block. For a workbook or a Parquet file it is an estimate: the share of the file size that corresponds to the
    /// share of the rows.
    pub consumed: u64,
}

/// Why decoding stops before the end of the file.
pub(crate) enum Stopped {
    /// The caller needs no more text.
    Enough,
    Failed(DecodeError),
}

impl From<DecodeError> for Stopped {
    fn from(error: DecodeError) -> Self {
        Self::Failed(error)
    }
}

/// Takes text of any length and passes it to the sink in blocks.
pub(crate) struct Blocks<'w, S> {
    watch: &'w Watch,
    sink: S,
    buffer: Vec<u8>,
    consumed: u64,
    /// The size of the file; if it is unknown, the number of bytes read is used instead.
    size: Option<u64>,
}

impl<'w, S: FnMut(Block<'_>) -> ControlFlow<()>> Blocks<'w, S> {
    pub(crate) fn new(watch: &'w Watch, size: Option<u64>, sink: S) -> Self {
        Self { watch, sink, buffer: Vec::with_capacity(BLOCK_MAX_BYTES), consumed: 0, size }
    }

    /// Sets how many bytes of the file are consumed. The value never decreases.
    pub(crate) fn set_consumed(&mut self, consumed: u64) {
        self.consumed = self.consumed.max(consumed.min(self.size.unwrap_or(u64::MAX)));
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Stopped> {
        self.watch.add_written(bytes.len() as u64, self.size.unwrap_or_else(|| self.watch.read()))?;
        while !bytes.is_empty() {
            // Keep a full block until more text follows, because the last block must report the whole file as consumed.
            if self.buffer.len() == BLOCK_MAX_BYTES {
                self.flush()?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_MAX_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Passes the rest of the text to the sink. The whole file is consumed.
    pub(crate) fn finish(mut self) -> Result<(), Stopped> {
        self.consumed = self.consumed.max(self.size.unwrap_or_else(|| self.watch.read()));
        if self.buffer.is_empty() { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), Stopped> {
        self.watch.set_in_sink(true);
        let flow = (self.sink)(Block { bytes: &self.buffer, consumed: self.consumed });
        self.watch.set_in_sink(false);
        self.buffer.clear();
        if flow.is_break() { Err(Stopped::Enough) } else { Ok(()) }
    }
}
