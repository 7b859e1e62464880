//! Finds the borders of CSV records.
//!
//! Rows of usual length are taken 64 bytes at a time. Where rows are long or have quotes in unusual places, a state
//! machine goes on with `memchr`.

use memchr::{memchr, memchr3};

use self::strides::Stop;
use super::hits::STRIDE;
use super::span::Span;
pub(super) use state::CsvScanner;
use state::{CsvState, LONG_ROW};

mod state;
mod strides;

#[cfg(test)]
mod tests;

/// Maximum number of bytes that the state machine takes before a stride is tried again.
const BACKOFF_MAX: usize = 16 * 1024;

/// Where strides are tried.
#[derive(Clone, Copy, Debug)]
enum Strides {
    From(usize),
    AfterShortRow,
    Never,
}

impl CsvScanner {
    /// Scans the next bytes of the file and reports each record whose end is certain.
    pub(super) fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(Span)) {
        let is_usual = !matches!(self.delimiter, b'"' | b'\n' | b'\r');
        let (mut at, mut backoff) = (0, STRIDE);
        let mut strides = if is_usual { Strides::From(0) } else { Strides::Never };
        while at < bytes.len() {
            at = self.scan_by_state(bytes, at, strides, &mut found);
            if at == bytes.len() {
                break;
            }
            let (next, stop) = self.scan_strides(bytes, at, &mut found);
            strides = match stop {
                Stop::AtEnd => Strides::Never,
                Stop::LongRow => Strides::AfterShortRow,
                Stop::Irregular => {
                    // Where few strides are regular, trying costs more than it saves.
                    backoff = if next - at > 16 * backoff { STRIDE } else { BACKOFF_MAX.min(2 * backoff) };
                    Strides::From(next + backoff)
                }
            };
            at = next;
        }
        self.offset += bytes.len() as u64;
    }

    /// Scans the next bytes by the state machine, until strides are to be tried. Returns the index where it stopped.
    fn scan_by_state(&mut self, bytes: &[u8], from: usize, strides: Strides, found: &mut impl FnMut(Span)) -> usize {
        let mut end = match strides {
            Strides::From(index) => index.min(bytes.len()),
            Strides::AfterShortRow | Strides::Never => bytes.len(),
        };
        let mut at = from;
        // The byte after a CR is no matter of strides.
        while at < end || (at < bytes.len() && matches!(self.state, CsvState::AfterCr(_))) {
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
                CsvState::Plain { .. } => {
                    let next = self.scan_plain(bytes, at, found);
                    if next - at < LONG_ROW && matches!(strides, Strides::AfterShortRow) {
                        end = next;
                    }
                    next
                }
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
        at
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

    /// Scans the inside of a quoted cell up to the next quote. Returns the index where it stopped.
    #[inline]
    fn scan_quoted(&mut self, bytes: &[u8], from: usize) -> usize {
        let mut at = from;
        while let Some(distance) = memchr(b'"', &bytes[at..]) {
            let after = at + distance + 1;
            // Continue directly if a quoted cell follows. Files with all cells quoted are common, and this halves the
            // number of searches in them.
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

    /// Scans up to the end of the record, the next opening quote or the end of the bytes. `from` must be outside quotes
    /// and not an opening quote. Returns the index where it stopped.
    #[inline]
    fn scan_plain(&mut self, bytes: &[u8], from: usize, found: &mut impl FnMut(Span)) -> usize {
        let mut at = from;
        while let Some(distance) = memchr3(b'\n', b'"', b'\r', &bytes[at..]) {
            let hit = at + distance;
            match bytes[hit] {
                // Every byte since `from` is outside quotes, so a delimiter here really separates cells.
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
}
