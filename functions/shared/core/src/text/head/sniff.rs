//! Recognises the format and the delimiter of text by its content.

use memchr::memchr;
use serde_json::{Map, Value};

use crate::text::csv::cell_reader::CellReader;
use crate::text::format::{Dialect, Format};
use crate::text::json::has_reserved_name;
use crate::text::scan::RecordScanner;

/// The delimiters that are recognised. If two are equally frequent, the earlier one in this list wins.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Number of records looked at to tell a table from other text.
const SNIFFED_RECORDS: usize = 20;

/// The format of text that begins with its first record, or with its header; `None` if it looks like neither.
///
/// JSON Lines if the first line that is not blank is a JSON object. CSV if the first record has two cells or more, and
/// at least half of the records after it have as many. Binary data, JSON arrays and markup are neither, and a list of
/// single values cannot be told from prose.
pub(super) fn format(text: &[u8], whole: bool) -> Option<Format> {
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0C);
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if text.iter().any(is_control) || matches!(text[start], b'<' | b'[') {
        return None;
    }
    if text[start] == b'{' && is_json_object(&text[start..], whole) {
        return Some(Format::Jsonl);
    }
    is_table(text, whole).then_some(Format::Csv)
}

fn is_json_object(text: &[u8], whole: bool) -> bool {
    let line = match memchr(b'\n', text) {
        Some(end) => &text[..end],
        None if whole => text,
        None => return false,
    };
    // Its row says what is wrong with such a line.
    has_reserved_name(line) || serde_json::from_slice::<Map<String, Value>>(line).is_ok()
}

fn is_table(text: &[u8], whole: bool) -> bool {
    let dialect = Dialect { format: Format::Csv, delimiter: delimiter(text) };
    let mut scanner = RecordScanner::new(&dialect, 0);
    let mut records = Vec::new();
    scanner.scan(text, |record| records.push(record));
    if whole {
        records.extend(scanner.finish().ok().flatten());
    }
    let mut cells = CellReader::new(dialect.delimiter);
    let mut counts = records.iter().take(SNIFFED_RECORDS).map(|record| {
        cells.read(&text[record.start as usize..record.content_end as usize]);
        cells.count()
    });
    let Some(columns) = counts.next().filter(|columns| *columns > 1) else { return false };
    let (same, other): (Vec<usize>, Vec<usize>) = counts.partition(|count| *count == columns);
    same.len() >= other.len()
}

/// The most frequent candidate in the first line that is not blank. Quoted parts do not count.
pub(super) fn delimiter(bytes: &[u8]) -> u8 {
    let mut counts = [0_u64; DELIMITERS.len()];
    let (mut quoted, mut cell_start) = (false, true);
    for &byte in bytes.iter().skip_while(|byte| matches!(byte, b'\n' | b'\r')) {
        match byte {
            // An escaped quote closes and reopens the quotes, with the same result here.
            b'"' if quoted => (quoted, cell_start) = (false, true),
            b'"' => (quoted, cell_start) = (cell_start, false),
            _ if quoted => {}
            b'\n' | b'\r' => break,
            _ => {
                let candidate = DELIMITERS.iter().position(|&delimiter| delimiter == byte);
                if let Some(index) = candidate {
                    counts[index] += 1;
                }
                cell_start = candidate.is_some();
            }
        }
    }
    let best = (0..counts.len()).rev().max_by_key(|&index| counts[index]).unwrap_or(0);
    DELIMITERS[best]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sniffed(text: &str) -> Option<Format> {
        format(text.as_bytes(), true)
    }

    #[test]
    fn tables_and_json_lines_are_recognised_by_their_content() {
        for table in ["a,b\n1,2\n", "a\tb\n", "a;b;c\n1;2;3\n4;5\n6;7;8\n", "\n\"x\ny\"|b\r\n1|2", "{a},b\n1,2\n"] {
            assert_eq!(sniffed(table), Some(Format::Csv), "{table:?}");
        }
        for lines in ["{}\n", "\n {\"a\":1}\r\n{\"a\":2}\n", "{\"a\": [1,2]}"] {
            assert_eq!(sniffed(lines), Some(Format::Jsonl), "{lines:?}");
        }
        assert_eq!(format(b"a,b\n1,2\n3", false), Some(Format::Csv), "the last record may go on");
    }

    #[test]
    fn other_text_and_binary_data_are_neither() {
        let others = [
            "",
            "\n\n",
            "id\n1\n2\n",
            "Dear Sir, I write to you\nabout the matter of\nthe lost file, which\nwas never found\n",
            "{\n  \"a\": 1\n}\n",
            "[{\"a\":1},{\"a\":2}]\n",
            "<html><body>a,b</body></html>\n<p>1,2</p>\n",
            "a,b\0\n1,2\n",
            "%PDF-1.4\n%\u{1},\n",
        ];
        for other in others {
            assert_eq!(sniffed(other), None, "{other:?}");
        }
        assert_eq!(format(b"{\"a\":1", false), None, "the first line does not end");
    }
}
