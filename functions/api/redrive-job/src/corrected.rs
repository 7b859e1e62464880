//! Reads a corrected file: rows that replace failed rows, each with the number of the row it corrects.
//!
//! CSV jobs: a failed-rows file, with its escaped cells. The header is that of the input, then `row`, then optionally
//! `code`, `message` and `column`, which are ignored. A row of the file is processed as it is. A row whose input cells
//! are all empty counts as left out.
//!
//! JSONL jobs, and jobs over many files: JSON lines such as `{"row": 7, "record": {…}}`; other fields are ignored. If a
//! line has no `record`, its `raw` is the text of the row, in the format of its file. If it has neither, the row counts
//! as left out.
//!
//! The rows may have any order.

use csv::{ByteRecord, ReaderBuilder, Terminator, WriterBuilder};
use rowmill_core::items::input::Correction;
use rowmill_core::model::results::failed_rows_columns;
use rowmill_core::model::spec::Spec;
use rowmill_core::text::{ChunkCutter, Format, Position, unescape_formula};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CorrectedError {
    /// The fault and its place: a clause of a problem detail, without a period.
    pub message: String,
}

fn error<T>(message: impl Into<String>) -> Result<T, CorrectedError> {
    Err(CorrectedError { message: message.into() })
}

/// Reads the rows of a corrected file for a job of this spec. They are in row order, and no row occurs twice.
pub fn read_corrected(bytes: &[u8], spec: &Spec) -> Result<Vec<Correction>, CorrectedError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut rows = match spec.head.dialect.format {
        Format::Csv => read_csv(bytes, spec)?,
        Format::Jsonl => read_jsonl(bytes)?,
    };
    let max_bytes = spec.limits.max_record_bytes;
    if let Some(long) = rows.iter().find(|row| row.text.len() as u64 > max_bytes) {
        return error(format!("row {} has more than the maximum of {max_bytes} bytes", long.row));
    }
    rows.sort_by_key(|correction| correction.row);
    match rows.windows(2).find(|pair| pair[0].row == pair[1].row) {
        Some(pair) => error(format!("row {} occurs twice", pair[0].row)),
        None if rows.is_empty() => error("it has no rows"),
        None => Ok(rows),
    }
}

fn read_csv(bytes: &[u8], spec: &Spec) -> Result<Vec<Correction>, CorrectedError> {
    check_quotes(bytes, spec)?;
    let delimiter = spec.head.dialect.delimiter;
    let mut reader = ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(bytes);
    let columns = spec.head.own_header();
    let header = reader.headers().map_err(|_| CorrectedError { message: "its header is not UTF-8".into() })?.clone();
    let names: Vec<&str> = header.iter().collect();
    let (own, ours) = names.split_at(columns.len().min(names.len()));
    let own: Vec<&str> = own.iter().copied().map(unescape_formula).collect();
    let known = failed_rows_columns(columns);
    if own != columns || ours.is_empty() || !known.iter().map(String::as_str).take(ours.len()).eq(ours.iter().copied())
    {
        let expected = columns
            .iter()
            .map(String::as_str)
            .chain([known[0].as_str()])
            .collect::<Vec<_>>()
            .join(&char::from(delimiter).to_string());
        return error(format!(
            "its header must be that of the input, followed by `{}`: `{}`",
            known[0],
            shortened(&expected)
        ));
    }
    let mut rows = Vec::new();
    for record in reader.byte_records() {
        let record =
            record.map_err(|cause| CorrectedError { message: format!("it cannot be read as CSV: {cause}") })?;
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != names.len() {
            return error(format!("line {line} has {} cells, but the header has {}", record.len(), names.len()));
        }
        let number = std::str::from_utf8(&record[columns.len()]).ok().and_then(|cell| cell.trim().parse().ok());
        let Some(row) = number else {
            return error(format!("line {line}: `{}` must be the number of a row", known[0]));
        };
        if record.iter().take(columns.len()).all(<[u8]>::is_empty) {
            continue;
        }
        let Some(text) = record_text(&record, columns.len(), delimiter) else {
            return error(format!("line {line} (row {row}) is not UTF-8"));
        };
        rows.push(Correction { row, text });
    }
    Ok(rows)
}

/// Rejects a quote that is never closed: it would make all following rows part of its cell.
fn check_quotes(bytes: &[u8], spec: &Spec) -> Result<(), CorrectedError> {
    let mut cutter = ChunkCutter::new(&spec.head.dialect, spec.limits, Position { offset: 0, row: 0 });
    cutter.push(bytes, &mut Vec::new());
    match cutter.finish(&mut Vec::new()) {
        Ok(_) => Ok(()),
        Err(quote) => error(format!("the quote that opens at byte {} of the file is never closed", quote.offset)),
    }
}

/// The first cells of a record as a record of the input, quoted again if needed.
fn record_text(record: &ByteRecord, cells: usize, delimiter: u8) -> Option<String> {
    let mut writer =
        WriterBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).from_writer(Vec::new());
    for cell in record.iter().take(cells) {
        writer.write_field(unescape_formula(std::str::from_utf8(cell).ok()?)).ok()?;
    }
    writer.write_record(None::<&[u8]>).ok()?;
    let mut bytes = writer.into_inner().ok()?;
    bytes.pop();
    String::from_utf8(bytes).ok()
}

/// A line of a corrected JSONL file.
#[derive(Deserialize)]
struct CorrectedLine<'a> {
    row: u64,
    /// The record's own text, since parsing could lose digits of a long number.
    #[serde(borrow, default)]
    record: Option<&'a RawValue>,
    #[serde(default)]
    raw: Option<String>,
    #[serde(default)]
    code: Option<String>,
}

/// The line, if it is an object with an object as its record. The parser alone would also accept a list of two.
fn corrected_line(line: &[u8]) -> Result<Option<CorrectedLine<'_>>, serde_json::Error> {
    let read: CorrectedLine<'_> = serde_json::from_slice(line)?;
    let record_is_object =
        read.record.map_or(read.code.is_some() || read.raw.is_some(), |record| record.get().starts_with('{'));
    Ok((line.trim_ascii_start().starts_with(b"{") && record_is_object).then_some(read))
}

fn read_jsonl(bytes: &[u8]) -> Result<Vec<Correction>, CorrectedError> {
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match corrected_line(line) {
            Ok(Some(CorrectedLine { row, record, raw, .. })) => {
                let text = record.map(|record| record.get().to_owned()).or(raw);
                rows.extend(text.map(|text| Correction { row, text }));
            }
            wrong => {
                // Not the parser's own message: it may quote the content of the line.
                let place = wrong.err().map_or(1, |cause| cause.column());
                return error(format!(
                    "line {number} is not `{{\"row\": number, \"record\": object}}`: the error is at its byte {place}"
                ));
            }
        }
    }
    Ok(rows)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_core::text::{ChunkLimits, Dialect, Head};
    use rowmill_testing::fixtures;

    fn spec(format: Format) -> Spec {
        let columns = vec!["a".into(), "b".into()];
        let head = Head { dialect: Dialect { format, delimiter: b';' }, columns, header: None, data_start: 6 };
        let limits = ChunkLimits { max_record_bytes: 20, ..fixtures::spec().limits };
        Spec { head, limits, ..fixtures::spec() }
    }

    fn csv(text: &str) -> Result<Vec<(u64, String)>, String> {
        let read = read_corrected(text.as_bytes(), &spec(Format::Csv));
        read.map(|rows| rows.into_iter().map(|row| (row.row, row.text)).collect()).map_err(|error| error.message)
    }

    #[test]
    fn corrections_are_sorted_and_have_the_format_of_the_input() {
        let read = csv("\u{feff}a;b;row;code\n\"x;y\";2;9;bad\n1;\"q\"\"\";3;\n").unwrap();
        assert_eq!(read, [(3, "1;\"q\"\"\"".to_owned()), (9, "\"x;y\";2".to_owned())]);
        let json = b"{\"row\":4,\"code\":\"x\",\"record\":{\"b\":1.50,\"a\":[1]}}\n\n{\"row\":2,\"record\":{}}";
        let read = read_corrected(json, &spec(Format::Jsonl)).unwrap();
        assert_eq!(
            read.iter().map(|row| (row.row, row.text.as_str())).collect::<Vec<_>>(),
            [(2, "{}"), (4, "{\"b\":1.50,\"a\":[1]}")]
        );
    }

    #[test]
    fn a_failed_rows_file_is_a_valid_corrected_file() {
        let read = csv("a;b;row;code;message;column\n'=1+1;-2;1;x;y;b\n;;2;row_too_long;z;\n").unwrap();
        assert_eq!(
            read,
            [(1, "=1+1;-2".to_owned())],
            "escaped cells are unescaped, and a row without cells is left out"
        );
        let lines = b"{\"row\":1,\"code\":\"x\",\"raw\":\"{oops\"}\n{\"row\":2,\"code\":\"row_too_long\"}\n";
        let read = read_corrected(lines, &spec(Format::Jsonl)).unwrap();
        assert_eq!(read, [Correction { row: 1, text: "{oops".into() }]);
    }

    #[test]
    fn input_columns_named_like_rowmill_columns_are_distinguished() {
        let mut spec = spec(Format::Csv);
        spec.head.columns = vec!["a".into(), "row".into()];
        let read = read_corrected(b"a;row;rowmill_row;rowmill_code\n1;2;7;x\n", &spec).unwrap();
        assert_eq!(read, [Correction { row: 7, text: "1;2".into() }]);
        let plain = read_corrected(b"a;row;row\n1;2;7\n", &spec).unwrap_err();
        assert!(plain.message.contains("rowmill_row"), "{plain}");
    }

    #[test]
    fn an_error_says_what_is_wrong_and_where() {
        assert!(csv("a;b\n1;2\n").unwrap_err().contains("header"));
        assert!(csv("row;a;b\n").unwrap_err().contains("header"));
        assert!(csv("a;b;row;reason\n").unwrap_err().contains("header"));
        assert!(csv("a;b;row\n1;2\n").unwrap_err().contains("line 2 has 2 cells"));
        assert!(csv("a;b;row\n1;2;x\n").unwrap_err().contains("line 2"));
        assert!(csv("a;b;row\n1;2;3\n2;2;3\n").unwrap_err().contains("row 3 occurs twice"));
        assert!(csv("a;b;row\n").unwrap_err().contains("no rows"));
        let open = csv("a;b;row;code\n1;2;3;\"open\n2;2;4;\n").unwrap_err();
        assert!(open.contains("byte 19"), "{open}");
        let list = read_corrected(b"[3,{}]", &spec(Format::Jsonl)).unwrap_err();
        assert!(list.message.contains("line 1"), "{list}");
        assert!(csv(&format!("a;b;row\n{};2;3\n", "x".repeat(20))).unwrap_err().contains("row 3"));
        let wrong = read_corrected(b"{\"row\":1,\"record\":{}}\n{\"row\":2}", &spec(Format::Jsonl)).unwrap_err();
        assert!(wrong.message.contains("line 2"), "{wrong}");
    }
}
