//! Splits CSV records into cells with `csv-core`.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

/// A cell that is not UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::text) struct BadCell {
    /// The 0-based number of the cell.
    pub index: usize,
    /// The 0-based position of its first invalid byte, in the cell without its quotes.
    pub byte: usize,
}

/// Splits one record into its cells. `raw` is the record without its terminator. Invalid UTF-8 is replaced by U+FFFD.
pub fn split_cells(raw: &[u8], delimiter: u8) -> Vec<String> {
    if raw.is_empty() {
        return Vec::new();
    }
    let mut reader = CellReader::new(delimiter);
    reader.read(raw);
    reader.each().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
}

/// Splits records into cells, one at a time.
pub(in crate::text) struct CellReader {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    text_length: usize,
    cells: usize,
}

impl CellReader {
    pub(in crate::text) fn new(delimiter: u8) -> Self {
        let mut reader = Self {
            reader: ReaderBuilder::new().delimiter(delimiter).build(),
            text: vec![0; 1024],
            ends: vec![0; 64],
            text_length: 0,
            cells: 0,
        };
        reader.restart();
        reader
    }

    /// Reads the record at the start of `input` and returns its length in bytes, without its terminator.
    ///
    /// `input` must start with the first byte of the record, so not with a line end.
    pub(in crate::text) fn read(&mut self, input: &[u8]) -> usize {
        (self.text_length, self.cells) = (0, 0);
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let (result, read, written, ended) =
                self.reader.read_record(rest, &mut self.text[self.text_length..], &mut self.ends[self.cells..]);
            consumed += read;
            self.text_length += written;
            self.cells += ended;
            match result {
                // The next call passes the empty rest. That tells csv-core that the input ends, and it returns the last
                // record.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record if rest.is_empty() => {
                    self.restart();
                    return consumed;
                }
                ReadRecordResult::Record => return consumed - 1,
                ReadRecordResult::End => {
                    self.restart();
                    return consumed;
                }
            }
        }
    }

    pub(in crate::text) fn count(&self) -> usize {
        self.cells
    }

    /// All cells of the record, concatenated, and the end of each, always on a character boundary.
    pub(in crate::text) fn text(&self) -> Result<(&str, &[usize]), BadCell> {
        let ends = &self.ends[..self.cells];
        match std::str::from_utf8(&self.text[..self.text_length]) {
            // All cells together can be valid UTF-8 although single cells are not: if a character's bytes lie in two
            // cells.
            Ok(text) if ends.iter().all(|&end| text.is_char_boundary(end)) => Ok((text, ends)),
            _ => Err(self.texts().err().unwrap_or(BadCell { index: 0, byte: 0 })),
        }
    }

    pub(in crate::text) fn texts(&self) -> Result<Vec<String>, BadCell> {
        let texts = self.each().enumerate().map(|(index, cell)| match std::str::from_utf8(cell) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(BadCell { index, byte: error.valid_up_to() }),
        });
        texts.collect()
    }

    fn each(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends[..self.cells].iter().map(move |&end| {
            let cell = &self.text[start..end];
            start = end;
            cell
        })
    }

    /// Resets the reader. csv-core drops a byte-order mark at the start of its first input, but in the middle of a file
    /// those bytes are content. So the first input is a line end, which yields nothing.
    fn restart(&mut self) {
        self.reader.reset();
        let _ = self.reader.read_record(b"\n", &mut self.text, &mut self.ends);
    }
}
