//! Reads the records of a chunk of CSV text.
//!
//! Nearly all rows are simple: the quotes that they begin a cell with are around the whole cell. Such a row is split
//! here. Any other row is left to `csv-core`.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::cell_reader::{BadCell, CellReader};
use super::cells::{Cells, RowGroup, RowPlace};
use crate::text::bad_record::{BadRecord, INVALID_UTF8, RAGGED_ROW, ROW_TOO_LONG};
use crate::text::scan::hits::Hits;
use rowmill_schema::shortened;

/// Maximum number of records read together, which share their memory.
const GROUP_ROWS: usize = 128;

/// Bytes of text that records share, less the last one of them.
const GROUP_BYTES: usize = 32 * 1024;

/// The longest row whose cells can be told, in bytes.
const ROW_MAX_BYTES: usize = u32::MAX as usize;

/// The records of a chunk, with the range of each in the bytes of the chunk.
pub(in crate::text) struct CsvRecords<'a> {
    columns: Arc<[String]>,
    delimiter: u8,
    bytes: &'a [u8],
    /// The bytes as text, if all of them are UTF-8.
    text: Option<&'a str>,
    at: usize,
    /// The delimiters, quotes and line ends; none if no row is split here.
    hits: Option<Hits<'a, 4>>,
    /// Of the row that was split last: the indices of quotes that only say that the next one is part of its cell.
    doubled: Vec<usize>,
    /// Made for the first row that needs it.
    reader: Option<Box<CellReader>>,
    group: Arc<RowGroup>,
    ready: VecDeque<(Range<usize>, Result<RowPlace, BadRecord>)>,
}

impl<'a> CsvRecords<'a> {
    pub(in crate::text) fn new(bytes: &'a [u8], delimiter: u8, columns: &Arc<[String]>) -> Self {
        // A cell must not end within a character, nor at a byte that means something else.
        let is_usual = delimiter.is_ascii() && !matches!(delimiter, b'"' | b'\n' | b'\r');
        let hits = is_usual && bytes.len() <= ROW_MAX_BYTES;
        Self {
            columns: Arc::clone(columns),
            delimiter,
            bytes,
            text: std::str::from_utf8(bytes).ok(),
            at: 0,
            hits: hits.then(|| Hits::new(bytes, [delimiter, b'"', b'\n', b'\r'])),
            doubled: Vec::new(),
            reader: None,
            group: Arc::default(),
            ready: VecDeque::new(),
        }
    }

    fn read_group(&mut self) {
        // The next group is about as large as the last one.
        let (bytes, cells) = self.group.size();
        let mut group = RowGroup::new(&self.columns, bytes + bytes / 8, cells);
        while self.ready.len() < GROUP_ROWS && group.size().0 < GROUP_BYTES {
            let rest = &self.bytes[self.at..];
            let Some(blank) = rest.iter().position(|byte| !matches!(byte, b'\n' | b'\r')) else { break };
            self.read_row(self.at + blank, &mut group);
        }
        self.group = group.shared();
    }

    fn read_row(&mut self, start: usize, group: &mut RowGroup) {
        let ends_start = group.size().1;
        if let Some((end, cells)) = self.split_simple(start, group) {
            if cells != self.columns.len() {
                group.drop_ends(ends_start);
                let bad = ragged(self.columns.len(), cells);
                return self.push(start..end, Err(bad));
            }
            let text = match self.text {
                Some(text) => text.get(start..end),
                None => std::str::from_utf8(&self.bytes[start..end]).ok(),
            };
            if let Some(text) = text {
                let place = group.add_without(ends_start, text, &self.doubled);
                return self.push(start..end, Ok(place));
            }
        }
        group.drop_ends(ends_start);
        let (end, read) = self.read_any(start, group);
        self.push(start..end, read);
    }

    #[inline]
    fn push(&mut self, range: Range<usize>, read: Result<RowPlace, BadRecord>) {
        self.at = range.end;
        self.ready.push_back((range, read));
    }

    /// Splits the row that starts here, if it is simple. Returns its end and the number of its cells. Adds the ends of
    /// as many cells as there are columns.
    #[inline]
    fn split_simple(&mut self, start: usize, group: &mut RowGroup) -> Option<(usize, usize)> {
        let hits = self.hits.as_mut()?;
        hits.skip_to(start);
        self.doubled.clear();
        let (mut cell_start, mut cells) = (start, 0);
        loop {
            let at = hits.next().unwrap_or(self.bytes.len());
            let byte = self.bytes.get(at);
            if byte == Some(&b'"') {
                // Elsewhere than at the start of a cell it is a character like any other.
                if at == cell_start {
                    loop {
                        let quote = hits.find(|&at| self.bytes[at] == b'"')?;
                        match self.bytes.get(quote + 1) {
                            Some(b'"') => self.doubled.push(quote - start),
                            Some(&next) if next != self.delimiter && !matches!(next, b'\n' | b'\r') => return None,
                            _ => break,
                        }
                        // The second one of the two.
                        hits.next();
                    }
                }
                continue;
            }
            if cells < self.columns.len() {
                group.push_end((at - start - self.doubled.len()) as u32);
            }
            cells += 1;
            if byte != Some(&self.delimiter) {
                return Some((at, cells));
            }
            cell_start = at + 1;
        }
    }

    /// Reads the row that starts here, with any content.
    fn read_any(&mut self, start: usize, group: &mut RowGroup) -> (usize, Result<RowPlace, BadRecord>) {
        let reader = self.reader.get_or_insert_with(|| Box::new(CellReader::new(self.delimiter)));
        let length = reader.read(&self.bytes[start..]);
        let end = start + length;
        if reader.count() != self.columns.len() {
            return (end, Err(ragged(self.columns.len(), reader.count())));
        }
        if length > ROW_MAX_BYTES {
            return (end, Err(too_long(length as u64)));
        }
        let place = reader.text().map(|(text, ends)| {
            let ends_start = group.size().1;
            ends.iter().for_each(|&end| group.push_end(end as u32));
            group.add_contents(ends_start, text)
        });
        (end, place.map_err(|bad| not_utf8(&self.columns, bad)))
    }
}

impl Iterator for CsvRecords<'_> {
    type Item = (Range<usize>, Result<Cells, BadRecord>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            self.read_group();
        }
        let (range, read) = self.ready.pop_front()?;
        Some((range, read.map(|place| Cells::new(&self.group, place))))
    }
}

fn ragged(columns: usize, cells: usize) -> BadRecord {
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    BadRecord {
        code: RAGGED_ROW,
        column: None,
        message: format!("The row has {}, but the file has {}.", counted(cells, "cell"), counted(columns, "column")),
    }
}

fn not_utf8(columns: &[String], bad: BadCell) -> BadRecord {
    BadRecord {
        code: INVALID_UTF8,
        column: Some(columns[bad.index].clone()),
        message: format!(
            "The cell in column `{}` is not valid UTF-8: byte {} of the cell is invalid.",
            shortened(&columns[bad.index]),
            bad.byte + 1
        ),
    }
}

/// Why a record of this length is not read.
pub(in crate::text) fn too_long(length: u64) -> BadRecord {
    BadRecord {
        code: ROW_TOO_LONG,
        column: None,
        message: format!("The row is about {length} bytes long and exceeds the maximum length of a row."),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::test_files::{columns, hostile_csv};

    type Read = Vec<(Range<usize>, Result<Cells, BadRecord>)>;

    fn read(bytes: &[u8], delimiter: u8, names: &[&str]) -> Read {
        CsvRecords::new(bytes, delimiter, &columns(names)).collect()
    }

    /// The same, with every row left to `csv-core`.
    fn read_slowly(bytes: &[u8], delimiter: u8, names: &[&str]) -> Read {
        let mut records = CsvRecords::new(bytes, delimiter, &columns(names));
        records.hits = None;
        records.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn a_row_that_is_split_here_reads_as_csv_core_reads_it(
            pieces in prop::collection::vec(hostile_csv(), 1..4), simple in 0_usize..140,
            delimiter in prop::sample::select(&b",;a \"\r\0\xc3\xff"[..]), width in 1_usize..5,
        ) {
            let bytes = pieces.join(&b"q,\"r;s\",t a\r\n".repeat(simple)[..]);
            let names = &["one", "two", "three", "four"][..width];
            let (fast, slow) = (read(&bytes, delimiter, names), read_slowly(&bytes, delimiter, names));
            prop_assert_eq!(fast, slow);
        }

        #[test]
        fn any_bytes_read_as_csv_core_reads_them(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(&b"\",\r\n"[..])], 0..400),
            width in 1_usize..4,
        ) {
            let names = &["one", "two", "three"][..width];
            prop_assert_eq!(read(&bytes, b',', names), read_slowly(&bytes, b',', names));
        }
    }

    #[test]
    fn simple_rows_are_split_here_and_only_others_by_csv_core() {
        let simple = "1,a b,\n\"2\",\"x, \n y\",z\"z\n3,é,\"\"\"\"\"\"";
        let mut records = CsvRecords::new(simple.as_bytes(), b',', &columns(&["a", "b", "c"]));
        let cells: Vec<Vec<String>> = records
            .by_ref()
            .map(|(_, cells)| cells.expect("good rows").iter().map(|(_, cell)| cell.to_owned()).collect())
            .collect();
        assert_eq!(cells, [["1", "a b", ""], ["2", "x, \n y", "z\"z"], ["3", "é", "\"\""]]);
        assert!(records.reader.is_none());
        for other in ["\"a\"b", "\"a\"\"b\" ", "\"a", "\""] {
            let mut records = CsvRecords::new(other.as_bytes(), b',', &columns(&["a"]));
            assert!(records.next().is_some_and(|(_, cells)| cells.is_ok()));
            assert!(records.reader.is_some(), "{other}");
        }
    }

    #[test]
    fn a_record_stays_when_later_ones_are_read() {
        let text: String = (0..5 * GROUP_ROWS).map(|row| format!("{row},\"{}\"\n", "x".repeat(row % 300))).collect();
        let records = read(text.as_bytes(), b',', &["a", "b"]);
        for (row, (_, cells)) in records.iter().enumerate() {
            let cells = cells.as_ref().expect("a good row");
            assert_eq!(cells.get("a"), Some(row.to_string().as_str()));
            assert_eq!(cells.get("b").map(str::len), Some(row % 300));
        }
    }
}
