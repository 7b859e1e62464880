//! The text on its way out.

use std::ops::ControlFlow;

use crate::error::DecodeError;
use crate::watch::Watch;

/// The most bytes of a [`Block`].
pub const BLOCK_MAX_BYTES: usize = 256 * 1024;

/// A piece of a file's text. It may end anywhere, within a record or a character too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block<'a> {
    /// The text, of 1 to [`BLOCK_MAX_BYTES`] bytes.
    pub bytes: &'a [u8],
    /// How many bytes of the file are used up: never less than of the block before, and all of them with the last block.
    /// Of a workbook or a Parquet file it is the part of the file's size that fits the part of its rows.
    pub consumed: u64,
}

/// Why a decode ends before its file does.
pub(crate) enum Stopped {
    /// The caller has seen enough.
    Enough,
    /// It cannot go on.
    Failed(DecodeError),
}

impl From<DecodeError> for Stopped {
    fn from(error: DecodeError) -> Self {
        Self::Failed(error)
    }
}

/// Takes text of any length and hands it on in blocks.
pub(crate) struct Blocks<'w, S> {
    watch: &'w Watch,
    sink: S,
    buffer: Vec<u8>,
    consumed: u64,
    /// The size of the file, where that is known; else what was read of it counts in its place.
    size: Option<u64>,
}

impl<'w, S: FnMut(Block<'_>) -> ControlFlow<()>> Blocks<'w, S> {
    pub(crate) fn new(watch: &'w Watch, size: Option<u64>, sink: S) -> Self {
        Self { watch, sink, buffer: Vec::with_capacity(BLOCK_MAX_BYTES), consumed: 0, size }
    }

    /// Notes how much of the file is used up; less than before changes nothing.
    pub(crate) fn set_consumed(&mut self, consumed: u64) {
        self.consumed = self.consumed.max(consumed.min(self.size.unwrap_or(u64::MAX)));
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Stopped> {
        self.watch.add_written(bytes.len() as u64, self.size.unwrap_or_else(|| self.watch.read()))?;
        while !bytes.is_empty() {
            // A full block waits for what follows it: the last one leaves when the end of the file is known.
            if self.buffer.len() == BLOCK_MAX_BYTES {
                self.hand_on()?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_MAX_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Hands the rest on; the whole file is used up.
    pub(crate) fn finish(mut self) -> Result<(), Stopped> {
        self.consumed = self.consumed.max(self.size.unwrap_or_else(|| self.watch.read()));
        if self.buffer.is_empty() { Ok(()) } else { self.hand_on() }
    }

    fn hand_on(&mut self) -> Result<(), Stopped> {
        self.watch.set_in_sink(true);
        let flow = (self.sink)(Block { bytes: &self.buffer, consumed: self.consumed });
        self.watch.set_in_sink(false);
        self.buffer.clear();
        if flow.is_break() { Err(Stopped::Enough) } else { Ok(()) }
    }
}
