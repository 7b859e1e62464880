//! Scans 64 bytes at a time.
//!
//! The number of quotes before a byte tells that it is inside quotes or not, as long as each quote that opens stands
//! where a quote may open.

use memchr::memchr;

use super::state::{CsvScanner, CsvState, LONG_ROW};
use crate::text::scan::hits::{STRIDE, bits};
use crate::text::scan::span::Span;

/// Why no more strides were taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// Too few bytes are left.
    AtEnd,
    /// There is no border in [`LONG_ROW`] bytes.
    LongRow,
    /// A quote stands where none may open. It is a character like any other.
    Irregular,
}

/// State of the bytes before a stride.
#[derive(Clone, Copy, Debug)]
struct Carry {
    /// All bits, if it begins inside quotes.
    inside: u64,
    /// 1 if a quote as its first byte opens, or is the second half of an escaped quote.
    may_open: u64,
    /// 1 if the byte before it is a closing quote or the first half of an escaped quote.
    closing: u64,
}

impl CsvScanner {
    /// Scans the next bytes, a stride at a time. Returns the index where it stopped, and why.
    pub(super) fn scan_strides(&mut self, bytes: &[u8], from: usize, found: &mut impl FnMut(Span)) -> (usize, Stop) {
        let (mut at, mut empty, mut carry) = (from, 0, self.carry(from));
        let stop = loop {
            if empty >= LONG_ROW {
                break Stop::LongRow;
            }
            let Some(stride) = bytes[at..].first_chunk() else { break Stop::AtEnd };
            let mut ends = bits(stride, [b'\n', b'\r']);
            if contains(stride, b'"') {
                let Some((next, inside)) = self.quotes(stride, at, ends, carry) else { break Stop::Irregular };
                (carry, empty) = (next, 0);
                ends &= !inside;
            } else if carry.inside != 0 {
                at += STRIDE;
                at += memchr(b'"', &bytes[at..]).unwrap_or(bytes.len() - at);
                continue;
            } else {
                let last = stride[STRIDE - 1];
                let may_open = u64::from(last == self.delimiter || matches!(last, b'\n' | b'\r'));
                carry = Carry { inside: 0, may_open, closing: 0 };
                empty = if ends == 0 { empty + STRIDE } else { 0 };
            }
            while ends != 0 {
                self.line_end(bytes, at + ends.trailing_zeros() as usize, found);
                ends &= ends - 1;
            }
            at += STRIDE;
        };
        // A CR at the very end has set the state.
        if !matches!(self.state, CsvState::AfterCr(_)) {
            self.state = self.state_after(carry, at);
        }
        (at, stop)
    }

    /// The quotes of a stride with these line ends: what the next stride needs to know, and the bytes inside quotes.
    /// `None` if a quote stands where none may open.
    #[inline]
    fn quotes(&mut self, stride: &[u8; STRIDE], at: usize, ends: u64, carry: Carry) -> Option<(Carry, u64)> {
        let quotes = bits(stride, [b'"']);
        let inside = parities(quotes) ^ carry.inside;
        let opening = quotes & inside;
        // A line end or a delimiter inside quotes does no harm: the next quote closes.
        let may_open = ends | quotes | bits(stride, [self.delimiter]);
        if opening & !(may_open << 1 | carry.may_open) != 0 {
            return None;
        }
        // After a closing quote it is the second half of an escaped one.
        let cell_starts = opening & !(quotes << 1 | carry.closing);
        if cell_starts != 0 {
            self.quote_offset = self.offset + (at + cell_starts.ilog2() as usize) as u64;
        }
        let last = STRIDE - 1;
        let next = Carry {
            inside: if inside >> last == 1 { u64::MAX } else { 0 },
            may_open: may_open >> last,
            closing: (quotes & !inside) >> last,
        };
        Some((next, inside))
    }

    /// A line end outside quotes.
    #[inline]
    fn line_end(&mut self, bytes: &[u8], index: usize, found: &mut impl FnMut(Span)) {
        let offset = self.offset + index as u64;
        // A blank line, or the LF after a CR.
        if offset <= self.record_start {
            self.record_start = offset + 1;
            return;
        }
        let line_feed = bytes[index] == b'\r' && bytes.get(index + 1) == Some(&b'\n');
        let end = offset + 1 + u64::from(line_feed);
        let record = Span { start: self.record_start, content_end: offset, end };
        self.record_start = end;
        if bytes[index] == b'\r' && index + 1 == bytes.len() {
            self.state = CsvState::AfterCr(record);
        } else {
            found(record);
        }
    }

    /// State of the bytes before a stride at this index.
    fn carry(&mut self, at: usize) -> Carry {
        let (inside, may_open, closing) = match self.state {
            CsvState::Between | CsvState::AfterCr(_) => {
                self.record_start = self.offset + at as u64;
                (0, 1, 0)
            }
            CsvState::Plain { cell_start } => (0, u64::from(cell_start), 0),
            CsvState::Quoted => (u64::MAX, 0, 0),
            CsvState::QuoteSeen => (0, 1, 1),
        };
        Carry { inside, may_open, closing }
    }

    /// The state before the byte at this index.
    fn state_after(&self, carry: Carry, at: usize) -> CsvState {
        match carry {
            Carry { inside: 1.., .. } => CsvState::Quoted,
            Carry { closing: 1.., .. } => CsvState::QuoteSeen,
            _ if self.record_start >= self.offset + at as u64 => CsvState::Between,
            _ => CsvState::Plain { cell_start: carry.may_open == 1 },
        }
    }
}

/// Of each bit, whether the number of bits up to and with it is odd.
#[inline]
fn parities(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// True if the stride has this byte. The loop has no exit, so that the compiler makes vector instructions of it.
#[inline]
fn contains(stride: &[u8; STRIDE], wanted: u8) -> bool {
    stride.iter().fold(false, |found, &byte| found | (byte == wanted))
}
