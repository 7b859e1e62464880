//! The cells of a CSV record.

use std::fmt;
use std::sync::Arc;

/// The cells of a record with the names of their columns. There are as many cells as columns.
///
/// Records that are read together share their memory, so a clone is cheap.
#[derive(Clone)]
pub struct Cells {
    group: Arc<RowGroup>,
    place: RowPlace,
}

/// Records that are read together.
#[derive(Default)]
pub(super) struct RowGroup {
    columns: Arc<[String]>,
    text: String,
    /// Of each record the end of each cell, counted from the start of the record's text. On a character boundary.
    ends: Vec<u32>,
}

/// Where a record is in its [`RowGroup`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RowPlace {
    text_start: usize,
    ends_start: usize,
    form: RowForm,
}

/// Form of the text of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RowForm {
    /// As in the file: a delimiter after each cell but the last one, and quotes around each cell that begins with a
    /// quote. But a quote within a cell is written once.
    AsInFile,
    /// The contents of its cells, without anything between them.
    Contents,
}

impl RowGroup {
    /// A group without records, with room for that many bytes of text and that many cells.
    pub(super) fn new(columns: &Arc<[String]>, bytes: usize, cells: usize) -> Self {
        Self { columns: Arc::clone(columns), text: String::with_capacity(bytes), ends: Vec::with_capacity(cells) }
    }

    /// The bytes of text and the cells so far.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.text.len(), self.ends.len())
    }

    /// Adds the end of a cell to the record that is being read.
    pub(super) fn push_end(&mut self, end: u32) {
        self.ends.push(end);
    }

    /// Drops the ends of a record that is not added after all.
    pub(super) fn drop_ends(&mut self, from: usize) {
        self.ends.truncate(from);
    }

    /// Adds the record with the ends from here on. `text` is as in the file, but the bytes at these indices are left
    /// out. They must be ASCII.
    #[inline]
    pub(super) fn add_without(&mut self, ends_start: usize, text: &str, left_out: &[usize]) -> RowPlace {
        let (text_start, mut from) = (self.text.len(), 0);
        for &index in left_out {
            self.text.push_str(&text[from..index]);
            from = index + 1;
        }
        self.text.push_str(&text[from..]);
        RowPlace { text_start, ends_start, form: RowForm::AsInFile }
    }

    /// Adds the record with the ends from here on. `text` is the contents of its cells, without anything between them.
    pub(super) fn add_contents(&mut self, ends_start: usize, text: &str) -> RowPlace {
        let text_start = self.text.len();
        self.text.push_str(text);
        RowPlace { text_start, ends_start, form: RowForm::Contents }
    }

    /// The group, complete. It may be kept for long, so it holds no memory in reserve.
    pub(super) fn shared(mut self) -> Arc<Self> {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
        Arc::new(self)
    }
}

impl Cells {
    pub(super) fn new(group: &Arc<RowGroup>, place: RowPlace) -> Self {
        Self { group: Arc::clone(group), place }
    }

    /// The names of the columns, shared by all records of a file.
    pub fn columns(&self) -> &Arc<[String]> {
        &self.group.columns
    }

    pub fn len(&self) -> usize {
        self.group.columns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.group.columns.is_empty()
    }

    pub fn at(&self, index: usize) -> Option<&str> {
        let ends = self.ends();
        let end = *ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.after(ends[before]));
        Some(self.cell(start, end))
    }

    pub fn get(&self, column: &str) -> Option<&str> {
        let index = self.group.columns.iter().position(|name| name == column)?;
        self.at(index)
    }

    /// The column names with their cells, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.group.columns.iter().zip(self.ends()).map(move |(column, &end)| {
            let cell = self.cell(start, end);
            start = self.after(end);
            (column.as_str(), cell)
        })
    }

    fn ends(&self) -> &[u32] {
        let from = self.place.ends_start;
        &self.group.ends[from..from + self.len()]
    }

    /// Where the cell after one with this end starts.
    fn after(&self, end: u32) -> u32 {
        end + u32::from(self.place.form == RowForm::AsInFile)
    }

    fn cell(&self, start: u32, end: u32) -> &str {
        let from = self.place.text_start;
        let cell = &self.group.text[from + start as usize..from + end as usize];
        match self.place.form {
            RowForm::AsInFile => cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell),
            RowForm::Contents => cell,
        }
    }
}

impl PartialEq for Cells {
    fn eq(&self, other: &Self) -> bool {
        self.columns() == other.columns() && self.iter().eq(other.iter())
    }
}

impl Eq for Cells {}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
