//! Hostile files for the tests of this folder, and slow, simple readers for comparison.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Chunk, ChunkCutter, ChunkLimits, Dialect, Format, Position, UnterminatedQuote};

pub(super) const START: Position = Position { offset: 0, row: 1 };

pub(super) fn csv(delimiter: u8) -> Dialect {
    Dialect { format: Format::Csv, delimiter }
}

pub(super) fn jsonl() -> Dialect {
    Dialect { format: Format::Jsonl, delimiter: b',' }
}

pub(super) fn limits(max_items: u32, max_bytes: u64, max_record_bytes: u64) -> ChunkLimits {
    ChunkLimits { max_items, max_bytes, max_record_bytes }
}

pub(super) fn no_limits() -> ChunkLimits {
    limits(u32::MAX, u64::MAX, u64::MAX)
}

pub(super) fn columns(names: &[&str]) -> Arc<[String]> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Bytes that are difficult for CSV readers.
pub(super) fn hostile_csv() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => Just(&b"\""[..]),
        4 => Just(&b","[..]),
        4 => Just(&b"\n"[..]),
        2 => Just(&b"\r"[..]),
        3 => Just(&b"\r\n"[..]),
        1 => Just(&b";"[..]),
        1 => Just(&b"\0"[..]),
        1 => Just(&b"\xef\xbb\xbf"[..]),
        1 => Just(&b"\xff"[..]),
        1 => Just(&b"\xc3"[..]),
        1 => Just(&b"\xa9"[..]),
        1 => Just(&b" "[..]),
        3 => Just(&b"a"[..]),
        1 => Just(&b"bcdefghijklmnopqrstuvwxyzbcdefghijklmnopqrstuvwxyz"[..]),
        2 => Just(&b"\"x,\r\ny\""[..]),
        1 => Just(&b"\n\n\r\n\n\r\r"[..]),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Bytes that are difficult for line readers.
pub(super) fn hostile_jsonl() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(&b"\n"[..]),
        2 => Just(&b"\r\n"[..]),
        2 => Just(&b"\r"[..]),
        1 => Just(&b" \t"[..]),
        1 => Just(&b"\0"[..]),
        1 => Just(&b"\x0c"[..]),
        1 => Just(&b"\xef\xbb\xbf"[..]),
        1 => Just(&b"\xff"[..]),
        2 => Just(&b"\""[..]),
        3 => Just(&b"{\"a\":1}"[..]),
        1 => Just(&b"{\"a\":"[..]),
        1 => Just(&b"{\"a\":123456789012345678901234567890}"[..]),
        1 => Just(&b"[1]"[..]),
    ];
    prop::collection::vec(piece, 0..50).prop_map(|pieces| pieces.concat())
}

pub(super) fn any_limits() -> impl Strategy<Value = ChunkLimits> {
    let length = prop_oneof![0_u64..80, Just(u64::MAX)];
    (0_u32..6, length.clone(), length).prop_map(|(items, bytes, record)| limits(items, bytes, record))
}

/// The lengths of the slices in which the cutter gets the bytes.
pub(super) fn any_splits() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0_usize..40, 0..30)
}

/// Cuts `file` from a position. The cutter gets slices of these lengths, then the rest.
pub(super) fn cut(
    file: &[u8],
    dialect: &Dialect,
    limits: ChunkLimits,
    from: Position,
    slices: &[usize],
) -> (Vec<Chunk>, Result<Position, UnterminatedQuote>) {
    let mut cutter = ChunkCutter::new(dialect, limits, from);
    let mut chunks = Vec::new();
    let mut rest = &file[from.offset as usize..];
    for &slice in slices {
        let (now, later) = rest.split_at(slice.min(rest.len()));
        cutter.push(now, &mut chunks);
        rest = later;
    }
    cutter.push(rest, &mut chunks);
    let end = cutter.finish(&mut chunks);
    (chunks, end)
}

/// The position of a record, and its opening quote if the file ends inside the quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlowRecord {
    pub start: usize,
    pub content_end: usize,
    pub open_quote: Option<usize>,
}

/// Finds records byte by byte, by the rules of the `csv` crate.
pub(super) fn slow_csv_records(file: &[u8], delimiter: u8) -> Vec<SlowRecord> {
    let mut records = Vec::new();
    let mut at = 0;
    while at < file.len() {
        if matches!(file[at], b'\n' | b'\r') {
            at += 1;
            continue;
        }
        let start = at;
        let mut open_quote = None;
        'record: loop {
            if file.get(at) == Some(&b'"') {
                open_quote = Some(at);
                at += 1;
                while at < file.len() {
                    match (file[at], file.get(at + 1)) {
                        (b'"', Some(b'"')) => at += 2,
                        (b'"', _) => {
                            open_quote = None;
                            at += 1;
                            break;
                        }
                        _ => at += 1,
                    }
                }
            }
            loop {
                match file.get(at) {
                    None | Some(b'\n' | b'\r') => break 'record,
                    Some(&byte) if byte == delimiter => break,
                    Some(_) => at += 1,
                }
            }
            at += 1;
        }
        records.push(SlowRecord { start, content_end: at, open_quote });
    }
    records
}

/// The records that the `csv` crate reads, each a list of cells.
pub(super) fn csv_crate_records(bytes: &[u8], delimiter: u8) -> Vec<Vec<Vec<u8>>> {
    // The leading blank line prevents the crate from treating the first bytes as a byte-order mark.
    let bytes = [b"\n", bytes].concat();
    let mut reader =
        ::csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(&bytes[..]);
    let records = reader.byte_records().map(|record| record.expect("bytes in memory can be read"));
    records.map(|record| record.iter().map(<[u8]>::to_vec).collect()).collect()
}

/// A real file from `tests/data`; the README there names its source.
pub(super) fn unicode_csv() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/unicode.csv");
    std::fs::read(path).expect("tests/data/unicode.csv is part of the repository")
}
