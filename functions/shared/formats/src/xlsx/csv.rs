//! Rows of cells, written as CSV while they are read.

use std::ops::ControlFlow;

use memchr::memchr;

use crate::blocks::{Block, Blocks, Stopped};

/// Commas to write some of.
const COMMAS: &[u8] = &[b','; 512];

/// Writes rows as CSV. A row of which no cell has a value leaves nothing behind; the first other one is the header, up to
/// whose width all are filled up.
pub(super) struct Rows<'b, 'w, S> {
    blocks: &'b mut Blocks<'w, S>,
    /// Cells of the header, once that is written.
    width: Option<usize>,
    /// Cells of the row begun, up to the last one with a value.
    cells: usize,
    quoted: Vec<u8>,
}

impl<'b, 'w, S: FnMut(Block<'_>) -> ControlFlow<()>> Rows<'b, 'w, S> {
    pub(super) fn new(blocks: &'b mut Blocks<'w, S>) -> Self {
        Self { blocks, width: None, cells: 0, quoted: Vec::new() }
    }

    /// How many cells of the row are written or passed over.
    pub(super) fn cells(&self) -> usize {
        self.cells
    }

    /// Writes the cell of this column, counted from 0, which must come after those written.
    pub(super) fn cell(&mut self, column: usize, text: &str) -> Result<(), Stopped> {
        if text.is_empty() {
            return Ok(());
        }
        // One comma behind each cell before this one, the one written last included.
        let commas = column - self.cells + usize::from(self.cells > 0);
        self.commas(commas)?;
        self.cells = column + 1;
        self.text(text)
    }

    /// Ends the row; `progress` is how much of the file is used up.
    pub(super) fn end_row(&mut self, progress: u64) -> Result<(), Stopped> {
        if self.cells == 0 {
            return Ok(());
        }
        let width = *self.width.get_or_insert(self.cells);
        self.commas(width.saturating_sub(self.cells))?;
        self.cells = 0;
        self.blocks.set_consumed(progress);
        self.blocks.write(b"\n")
    }

    fn commas(&mut self, mut count: usize) -> Result<(), Stopped> {
        while count > 0 {
            let now = count.min(COMMAS.len());
            self.blocks.write(&COMMAS[..now])?;
            count -= now;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Stopped> {
        // More is quoted than must be: what could be taken for the delimiter when that is looked for in the header, and what
        // could be taken for a byte-order mark.
        let is_special = |byte| matches!(byte, b'"' | b',' | b'\n' | b'\r' | b';' | b'\t' | b'|');
        let bytes = text.as_bytes();
        if !text.starts_with('\u{feff}') && !bytes.iter().copied().any(is_special) {
            return self.blocks.write(bytes);
        }
        self.quoted.clear();
        self.quoted.push(b'"');
        let mut rest = bytes;
        while let Some(quote) = memchr(b'"', rest) {
            self.quoted.extend_from_slice(&rest[..=quote]);
            self.quoted.push(b'"');
            rest = &rest[quote + 1..];
        }
        self.quoted.extend_from_slice(rest);
        self.quoted.push(b'"');
        self.blocks.write(&self.quoted)
    }
}
