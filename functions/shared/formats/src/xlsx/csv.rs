//! Writes rows of cells as CSV while they are read.

use std::ops::ControlFlow;

use memchr::memchr;

use crate::blocks::{Block, Blocks, Stopped};

/// A supply of commas for empty cells.
const COMMAS: &[u8] = &[b','; 512];

/// Writes rows as CSV. Rows without a value are omitted. The first row with a value, after the title rows, is the
/// header; shorter rows behind it are padded to its width.
pub(super) struct Rows<'b, 'w, S> {
    blocks: &'b mut Blocks<'w, S>,
    /// Number of rows with a value that still stand before the header.
    title_rows: u32,
    /// Number of cells of the header; `None` before it is written.
    width: Option<usize>,
    /// Number of cells of the current row, up to the last one with a value.
    cells: usize,
    quoted: Vec<u8>,
}

impl<'b, 'w, S: FnMut(Block<'_>) -> ControlFlow<()>> Rows<'b, 'w, S> {
    pub(super) fn new(blocks: &'b mut Blocks<'w, S>, title_rows: u32) -> Self {
        Self { blocks, title_rows, width: None, cells: 0, quoted: Vec::new() }
    }

    /// Number of cells of the current row that are written, including the empty ones before them.
    pub(super) fn cells(&self) -> usize {
        self.cells
    }

    /// Writes the cell in this 0-based column. The column must come after those that were written.
    pub(super) fn cell(&mut self, column: usize, text: &str) -> Result<(), Stopped> {
        if text.is_empty() {
            return Ok(());
        }
        // One comma after each cell since the last one that was written, including that one.
        let commas = column - self.cells + usize::from(self.cells > 0);
        self.commas(commas)?;
        self.cells = column + 1;
        self.text(text)
    }

    /// Ends the row. `progress` is the number of bytes of the file that are consumed.
    pub(super) fn end_row(&mut self, progress: u64) -> Result<(), Stopped> {
        if self.cells == 0 {
            return Ok(());
        }
        if self.title_rows > 0 {
            self.title_rows -= 1;
        } else {
            let width = *self.width.get_or_insert(self.cells);
            self.commas(width.saturating_sub(self.cells))?;
        }
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
        // Quotes more than CSV requires: also text that the detection of the delimiter could take for a delimiter, and
        // text that looks like a byte-order mark.
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
