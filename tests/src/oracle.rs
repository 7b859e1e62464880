//! Counts rows with the `csv` crate, independently of Rowmill's own reader.

use std::ops::Range;

/// Number of records the `csv` crate finds in these bytes, which begin on a record border and hold no header.
pub fn csv_records(bytes: &[u8]) -> u64 {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    reader.byte_records().inspect(|record| assert!(record.is_ok(), "bytes can always be read")).count() as u64
}

/// The rows (counted from 1, the header not counted) whose number of cells differs from the header's.
pub fn ragged_rows(file: &[u8]) -> Vec<u64> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let columns = reader.byte_headers().expect("bytes can always be read").len();
    let records = reader.byte_records().map(|record| record.expect("bytes can always be read").len());
    (1..).zip(records).filter(|(_, cells)| *cells != columns).map(|(row, _)| row).collect()
}

pub fn range(file: &[u8], range: Range<u64>) -> &[u8] {
    &file[usize::try_from(range.start).expect("fits")..usize::try_from(range.end).expect("fits")]
}
