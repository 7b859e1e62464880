//! Finds record boundaries in a stream of bytes, in constant memory.
//!
//! A scanner stores no bytes, only the start of the current record and its state. So the result does not depend on how
//! the stream is divided into slices.

use memchr::memchr;

use self::csv::CsvScanner;
use crate::text::format::{Dialect, Format};
pub(super) use span::{OpenQuote, Span};

pub(super) mod hits;

mod csv;
mod span;

/// A record scanner for one of the formats.
#[derive(Debug)]
pub(super) enum RecordScanner {
    Csv(CsvScanner),
    Jsonl(JsonlScanner),
}

impl RecordScanner {
    /// Starts at `offset` of the file, which must be a record boundary or in the blank lines before one.
    pub(super) fn new(dialect: &Dialect, offset: u64) -> Self {
        match dialect.format {
            Format::Csv => Self::Csv(CsvScanner::new(dialect.delimiter, offset)),
            Format::Jsonl => Self::Jsonl(JsonlScanner::new(offset)),
        }
    }

    /// Scans the next bytes of the file and reports each record whose end is certain.
    pub(super) fn scan(&mut self, bytes: &[u8], found: impl FnMut(Span)) {
        match self {
            Self::Csv(scanner) => scanner.scan(bytes, found),
            Self::Jsonl(scanner) => scanner.scan(bytes, found),
        }
    }

    /// Ends the file. Returns the last record if it has no terminator.
    pub(super) fn finish(&mut self) -> Result<Option<Span>, OpenQuote> {
        match self {
            Self::Csv(scanner) => scanner.finish(),
            Self::Jsonl(scanner) => Ok(scanner.finish()),
        }
    }

    /// The start of the current record; between records, the earliest possible start of the next one.
    pub(super) fn record_start(&self) -> u64 {
        match self {
            Self::Csv(scanner) => scanner.record_start(),
            Self::Jsonl(scanner) => scanner.line_start,
        }
    }

    /// The offset of the next byte to scan.
    pub(super) fn offset(&self) -> u64 {
        match self {
            Self::Csv(scanner) => scanner.offset(),
            Self::Jsonl(scanner) => scanner.offset,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LineState {
    /// The line has only white space so far.
    Blank,
    /// The line has content. `after_cr`: the last byte was a CR, which is part of the line end if an LF follows.
    Record { after_cr: bool },
}

/// Finds the lines of a JSON Lines file that are not blank. A record starts at the start of its line.
#[derive(Debug)]
pub(super) struct JsonlScanner {
    offset: u64,
    state: LineState,
    line_start: u64,
}

impl JsonlScanner {
    fn new(offset: u64) -> Self {
        Self { offset, state: LineState::Blank, line_start: offset }
    }

    fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(Span)) {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.state {
                LineState::Blank if is_blank(bytes[at]) => at + 1,
                LineState::Blank if bytes[at] == b'\n' => {
                    self.line_start = self.offset + at as u64 + 1;
                    at + 1
                }
                LineState::Blank => {
                    self.state = LineState::Record { after_cr: false };
                    at
                }
                LineState::Record { after_cr } => match memchr(b'\n', &bytes[at..]) {
                    Some(distance) => {
                        let hit = at + distance;
                        let after_cr = if hit > 0 { bytes[hit - 1] == b'\r' } else { after_cr };
                        let end = self.offset + hit as u64 + 1;
                        found(Span { start: self.line_start, content_end: end - 1 - u64::from(after_cr), end });
                        self.line_start = end;
                        self.state = LineState::Blank;
                        hit + 1
                    }
                    None => {
                        self.state = LineState::Record { after_cr: bytes[bytes.len() - 1] == b'\r' };
                        bytes.len()
                    }
                },
            };
        }
        self.offset += bytes.len() as u64;
    }

    fn finish(&mut self) -> Option<Span> {
        let state = std::mem::replace(&mut self.state, LineState::Blank);
        matches!(state, LineState::Record { .. }).then_some(Span {
            start: self.line_start,
            content_end: self.offset,
            end: self.offset,
        })
    }
}

/// True if the byte is JSON white space other than a line feed.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}
