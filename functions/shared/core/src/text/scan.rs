//! Finding record borders in a stream of bytes, with constant memory and without looking at most bytes one by one.
//!
//! A scanner keeps no bytes, only where the record in hand began and what the next byte would mean, so that it makes no
//! difference how the stream is cut into slices.

use memchr::{memchr, memchr3};

use super::format::{Dialect, Format};

/// Where one record lies in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    /// Offset of its first byte.
    pub start: u64,
    /// Offset after its last byte, its terminator left out.
    pub content_end: u64,
    /// Offset after its terminator.
    pub end: u64,
}

/// A quote that was still open when the file ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpenQuote {
    /// Offset of the record it is in.
    pub record_start: u64,
    /// Offset of the quote itself.
    pub offset: u64,
}

/// A record scanner for either format.
#[derive(Debug)]
pub(super) enum RecordScanner {
    Csv(CsvScanner),
    Jsonl(JsonlScanner),
}

impl RecordScanner {
    /// Starts at a record border (or in the blank lines before one) at `offset` of the file.
    pub(super) fn new(dialect: &Dialect, offset: u64) -> Self {
        match dialect.format {
            Format::Csv => Self::Csv(CsvScanner::new(dialect.delimiter, offset)),
            Format::Jsonl => Self::Jsonl(JsonlScanner::new(offset)),
        }
    }

    /// Scans the next bytes of the file and reports each record whose border is certain by now.
    pub(super) fn scan(&mut self, bytes: &[u8], found: impl FnMut(Span)) {
        match self {
            Self::Csv(scanner) => scanner.scan(bytes, found),
            Self::Jsonl(scanner) => scanner.scan(bytes, found),
        }
    }

    /// The file ends here: the last record, if one is under way.
    pub(super) fn finish(&mut self) -> Result<Option<Span>, OpenQuote> {
        match self {
            Self::Csv(scanner) => scanner.finish(),
            Self::Jsonl(scanner) => Ok(scanner.finish()),
        }
    }

    /// Where the record that is being scanned begins, or the next one can at the earliest.
    pub(super) fn record_start(&self) -> u64 {
        match self {
            Self::Csv(CsvScanner { state: CsvState::Between, offset, .. }) => *offset,
            Self::Csv(CsvScanner { state: CsvState::AfterCr(record), .. }) => record.start,
            Self::Csv(scanner) => scanner.record_start,
            Self::Jsonl(scanner) => scanner.line_start,
        }
    }

    /// Offset in the file of the next byte to scan.
    pub(super) fn offset(&self) -> u64 {
        match self {
            Self::Csv(scanner) => scanner.offset,
            Self::Jsonl(scanner) => scanner.offset,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CsvState {
    /// Before a record: line ends here are blank lines.
    Between,
    /// After a CR that ended a record: an LF here still belongs to that record.
    AfterCr(Span),
    /// In a record, outside quotes. With `cell_start`, the next byte is the first of its cell, where alone a quote opens.
    Plain { cell_start: bool },
    /// Inside quotes.
    Quoted,
    /// After a quote inside quotes: either the first half of an escaped one, or the closing one.
    QuoteSeen,
}

/// Finds records as the `csv` crate with its default settings sees them.
#[derive(Debug)]
pub(super) struct CsvScanner {
    delimiter: u8,
    offset: u64,
    state: CsvState,
    record_start: u64,
    quote_offset: u64,
}

impl CsvScanner {
    fn new(delimiter: u8, offset: u64) -> Self {
        Self { delimiter, offset, state: CsvState::Between, record_start: offset, quote_offset: offset }
    }

    fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(Span)) {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.state {
                CsvState::Between => self.skip_blank(bytes, at),
                CsvState::AfterCr(mut record) => {
                    let line_feed = bytes[at] == b'\n';
                    record.end += u64::from(line_feed);
                    found(record);
                    self.state = CsvState::Between;
                    at + usize::from(line_feed)
                }
                CsvState::Plain { cell_start: true } if bytes[at] == b'"' => self.open_quote(at),
                CsvState::Plain { .. } => self.scan_plain(bytes, at, &mut found),
                CsvState::Quoted => self.scan_quoted(bytes, at),
                CsvState::QuoteSeen if bytes[at] == b'"' => {
                    self.state = CsvState::Quoted;
                    at + 1
                }
                CsvState::QuoteSeen => {
                    self.state = CsvState::Plain { cell_start: false };
                    at
                }
            };
        }
        self.offset += bytes.len() as u64;
    }

    #[inline]
    fn skip_blank(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes[at..].iter().position(|byte| !matches!(byte, b'\n' | b'\r')) {
            Some(blank) => {
                self.record_start = self.offset + (at + blank) as u64;
                self.state = CsvState::Plain { cell_start: true };
                at + blank
            }
            None => bytes.len(),
        }
    }

    #[inline]
    fn open_quote(&mut self, at: usize) -> usize {
        self.quote_offset = self.offset + at as u64;
        self.state = CsvState::Quoted;
        at + 1
    }

    /// Scans the inside of a quoted cell up to its next quote, and says where it stopped.
    #[inline]
    fn scan_quoted(&mut self, bytes: &[u8], from: usize) -> usize {
        let mut at = from;
        while let Some(distance) = memchr(b'"', &bytes[at..]) {
            let after = at + distance + 1;
            // A quoted cell right after this one is passed over here: files with every cell quoted are common, and it
            // halves the searches in them.
            match bytes[after..] {
                [delimiter, b'"', ..] if delimiter == self.delimiter && delimiter != b'"' => {
                    at = self.open_quote(after + 1);
                }
                _ => {
                    self.state = CsvState::QuoteSeen;
                    return after;
                }
            }
        }
        bytes.len()
    }

    /// Scans from `from`, which is outside quotes and is no opening quote, to the end of the record, to the next opening
    /// quote or to the end of the bytes, and says where it stopped.
    #[inline]
    fn scan_plain(&mut self, bytes: &[u8], from: usize, found: &mut impl FnMut(Span)) -> usize {
        let mut at = from;
        while let Some(distance) = memchr3(b'\n', b'"', b'\r', &bytes[at..]) {
            let hit = at + distance;
            match bytes[hit] {
                // Every byte from `from` on is outside quotes, so a delimiter among them is a real one.
                b'"' if hit > from && bytes[hit - 1] == self.delimiter => {
                    return self.open_quote(hit);
                }
                b'"' => at = hit + 1,
                end => {
                    let content_end = self.offset + hit as u64;
                    let record = Span { start: self.record_start, content_end, end: content_end + 1 };
                    if end == b'\r' {
                        self.state = CsvState::AfterCr(record);
                    } else {
                        found(record);
                        self.state = CsvState::Between;
                    }
                    return hit + 1;
                }
            }
        }
        self.state = CsvState::Plain { cell_start: bytes[bytes.len() - 1] == self.delimiter };
        bytes.len()
    }

    fn finish(&mut self) -> Result<Option<Span>, OpenQuote> {
        match std::mem::replace(&mut self.state, CsvState::Between) {
            CsvState::Between => Ok(None),
            CsvState::AfterCr(record) => Ok(Some(record)),
            CsvState::Plain { .. } | CsvState::QuoteSeen => {
                Ok(Some(Span { start: self.record_start, content_end: self.offset, end: self.offset }))
            }
            CsvState::Quoted => Err(OpenQuote { record_start: self.record_start, offset: self.quote_offset }),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LineState {
    /// Nothing but white space in this line so far.
    Blank,
    /// In a line that holds something. `after_cr`: the last byte scanned was a CR, which an LF would make part of the
    /// line's end.
    Record { after_cr: bool },
}

/// Finds the lines of a JSON Lines file that are not blank. A record begins where its line does.
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

/// JSON's own white space, the line feed left out.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}
