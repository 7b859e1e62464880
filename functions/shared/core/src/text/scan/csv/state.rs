//! The state of a scanner of CSV records.

use crate::text::scan::hits::STRIDE;
use crate::text::scan::span::{OpenQuote, Span};

/// Number of bytes without a border from which `memchr` is quicker.
pub(super) const LONG_ROW: usize = 2 * STRIDE;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CsvState {
    /// Before a record. Line ends here are blank lines.
    Between,
    /// After a CR that ended a record. A following LF belongs to that record.
    AfterCr(Span),
    /// In a record, outside quotes. `cell_start`: the next byte is the first byte of its cell. Only there a quote
    /// opens.
    Plain { cell_start: bool },
    /// Inside quotes.
    Quoted,
    /// After a quote inside quotes: it is the closing quote or the first half of an escaped quote.
    QuoteSeen,
}

/// Finds the same records as the `csv` crate with its default settings.
#[derive(Debug)]
pub(in crate::text) struct CsvScanner {
    pub(super) delimiter: u8,
    pub(super) offset: u64,
    pub(super) state: CsvState,
    pub(super) record_start: u64,
    pub(super) quote_offset: u64,
}

impl CsvScanner {
    pub(in crate::text::scan) fn new(delimiter: u8, offset: u64) -> Self {
        Self { delimiter, offset, state: CsvState::Between, record_start: offset, quote_offset: offset }
    }

    /// Before a record, where the next one can start.
    pub(in crate::text::scan) fn record_start(&self) -> u64 {
        match self.state {
            CsvState::Between => self.offset,
            CsvState::AfterCr(record) => record.start,
            _ => self.record_start,
        }
    }

    /// The offset of the next byte to scan.
    pub(in crate::text::scan) fn offset(&self) -> u64 {
        self.offset
    }

    /// Ends the file. Returns the last record if it has no terminator.
    pub(in crate::text::scan) fn finish(&mut self) -> Result<Option<Span>, OpenQuote> {
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
