//! Reads the items of one chunk.

use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;
use serde_json::Value;

use super::bad_record::{BadRecord, INVALID_UTF8};
pub use super::csv::Cells;
use super::csv::records::{CsvRecords, too_long};
use super::cut::{Chunk, ChunkMode};
use super::format::{Dialect, Format};
use super::json;
use super::likely_charset::likely_charset;
use super::scan::is_blank;

/// One record of the file, well-formed or not.
#[derive(Clone, PartialEq, Debug)]
pub struct RawItem<'a> {
    /// Its 1-based number in the file.
    pub row: u64,
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// Its bytes in the file, without the terminator.
    pub raw: &'a [u8],
    /// Its content, or why it is not well-formed.
    pub record: Result<Record, BadRecord>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Record {
    /// The cells of a CSV record, as many as there are columns.
    Cells(Cells),
    /// The object of a JSON line.
    Json(Value),
}

/// Reads the items of a chunk from its bytes. For a [`ChunkMode::TooLong`] chunk the first bytes are enough: they
/// become the `raw` of its single item.
///
/// A chunk of the same file yields exactly [`Chunk::items`] items. Another number means that the file has changed; the
/// caller must check this.
pub fn read_items<'a>(chunk: &Chunk, bytes: &'a [u8], dialect: &Dialect, columns: &Arc<[String]>) -> Items<'a> {
    let reading = match (chunk.mode, dialect.format) {
        (ChunkMode::TooLong, _) => Reading::TooLong { length: Some(chunk.length) },
        (ChunkMode::Items, Format::Csv) => Reading::Csv(Box::new(CsvRecords::new(bytes, dialect.delimiter, columns))),
        (ChunkMode::Items, Format::Jsonl) => Reading::Jsonl,
    };
    let (hint, likely) = (CharsetHint::None, None);
    Items { bytes, at: 0, chunk_offset: chunk.offset, row: chunk.first_row, reading, hint, likely }
}

/// Hint at the charset of the file, in the message of an item that is not UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CharsetHint {
    /// Nothing: the user cannot choose a charset.
    None,
    /// The likely charset, and the param that sets it.
    Likely,
    /// That the bytes are no text of this charset, which the user or the file has declared.
    Declared(&'static str),
}

/// The items of a chunk, from [`read_items`].
pub struct Items<'a> {
    bytes: &'a [u8],
    /// The end of the last line, of JSON Lines.
    at: usize,
    chunk_offset: u64,
    row: u64,
    reading: Reading<'a>,
    hint: CharsetHint,
    /// The likely charset of the chunk, once it is needed.
    likely: Option<Option<&'static str>>,
}

impl Items<'_> {
    /// Sets what the messages of items that are not UTF-8 say about the charset of the file.
    pub const fn with_hint(mut self, hint: CharsetHint) -> Self {
        self.hint = hint;
        self
    }

    fn add_hint(&mut self, bad: &mut BadRecord) {
        match self.hint {
            CharsetHint::None => {}
            CharsetHint::Declared(charset) => {
                bad.message.push_str(&format!(" The file is read as {charset}, and these bytes are no text of it."));
            }
            CharsetHint::Likely => {
                if let Some(charset) = *self.likely.get_or_insert_with(|| likely_charset(self.bytes)) {
                    bad.message.push_str(&format!(
                        " The text around it looks like {charset}; if it is, set the param `encoding` to `{charset}`."
                    ));
                }
            }
        }
    }
}

enum Reading<'a> {
    Csv(Box<CsvRecords<'a>>),
    Jsonl,
    TooLong { length: Option<u64> },
}

impl<'a> Iterator for Items<'a> {
    type Item = RawItem<'a>;

    fn next(&mut self) -> Option<RawItem<'a>> {
        let (range, mut record) = match &mut self.reading {
            Reading::Csv(records) => {
                let (range, cells) = records.next()?;
                (range, cells.map(Record::Cells))
            }
            Reading::Jsonl => {
                let (range, record) = next_line(self.bytes, self.at)?;
                self.at = range.end;
                (range, record)
            }
            Reading::TooLong { length } => (0..self.bytes.len(), Err(too_long(length.take()?))),
        };
        if let Err(bad) = &mut record
            && bad.code == INVALID_UTF8
        {
            self.add_hint(bad);
        }
        let offset = self.chunk_offset + range.start as u64;
        let item = RawItem { row: self.row, offset, raw: &self.bytes[range], record };
        self.row += 1;
        Some(item)
    }
}

/// The first line from here on that is not blank.
fn next_line(bytes: &[u8], mut start: usize) -> Option<(Range<usize>, Result<Record, BadRecord>)> {
    loop {
        let line = bytes.get(start..).filter(|line| !line.is_empty())?;
        let end = memchr(b'\n', line);
        let content = &line[..end.unwrap_or(line.len())];
        if content.iter().all(|&byte| is_blank(byte)) {
            start += end? + 1;
            continue;
        }
        let raw = if end.is_some() { content.strip_suffix(b"\r").unwrap_or(content) } else { content };
        let record = match std::str::from_utf8(raw) {
            Ok(text) => json::line::parse(text).map(Record::Json),
            Err(error) => Err(BadRecord {
                code: INVALID_UTF8,
                column: None,
                message: format!("The line is not valid UTF-8: byte {} is invalid.", error.valid_up_to() + 1),
            }),
        };
        return Some((start..start + raw.len(), record));
    }
}
