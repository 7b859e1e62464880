//! Reads the head of a file: its format, delimiter and columns, and the start of its records.

use serde::{Deserialize, Serialize};

use crate::text::csv::cell_reader::CellReader;
use crate::text::format::{Dialect, Format};
use crate::text::likely_charset::likely_charset;
use crate::text::scan::{RecordScanner, Span};
use columns::unique_names;
pub use error::HeadError;
pub use limits::{COLUMNS_MAX, TITLE_ROWS_MAX};
use rowmill_schema::shortened;

mod columns;
mod error;
mod limits;
mod sniff;

#[cfg(test)]
mod head_tests;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// The params of a job that describe the text of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TextParams {
    /// The format. Default: from the content type, else from the file name, else from the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// One ASCII character (or `\t`). Default: detected in the line of the header. Ignored for JSON Lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// True if a record names the columns. Default: true. Ignored for JSON Lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// Which record behind the skipped ones names the columns, counted from 1; 0 for none. Default: 1. Only for CSV.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_row: Option<u32>,
    /// Number of records at the start of the file that are skipped. Default: 0. Only for CSV.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_rows: Option<u32>,
}

/// Number of records before the header, or before the first item if there is no header. Blank lines do not count.
pub fn title_rows(header_row: Option<u32>, skip_rows: Option<u32>) -> u32 {
    skip_rows.unwrap_or(0).saturating_add(header_row.unwrap_or(1).saturating_sub(1))
}

impl TextParams {
    /// Which record behind the skipped ones names the columns, counted from 1; 0 for none.
    pub fn header_number(&self) -> u32 {
        self.header_row.unwrap_or(if self.header == Some(false) { 0 } else { 1 })
    }

    /// Checks the params as far as nothing of the file is known.
    ///
    /// # Errors
    /// A value that is right for no file.
    pub fn check(&self) -> Result<(), HeadError> {
        self.header_place()?;
        self.delimiter.as_deref().map_or(Ok(()), |text| delimiter_of(text).map(drop))
    }

    /// Checks the params that say where the header is. Returns the number of title rows and whether there is a header.
    fn header_place(&self) -> Result<(u32, bool), HeadError> {
        for (param, value) in [("headerRow", self.header_row), ("skipRows", self.skip_rows)] {
            if value.is_some_and(|value| value > TITLE_ROWS_MAX) {
                return Err(HeadError::TooManyTitleRows { param });
            }
        }
        let has_header = match (self.header, self.header_row) {
            (Some(header), Some(row)) if header != (row > 0) => return Err(HeadError::HeaderContradiction),
            (header, row) => header.unwrap_or(true) && row != Some(0),
        };
        Ok((title_rows(self.header_row, self.skip_rows), has_header))
    }
}

/// The head of a file, as read from its first bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    pub dialect: Dialect,
    /// The names of the columns: unique and not empty. No columns for JSON Lines and for an empty file.
    pub columns: Vec<String>,
    /// The names in the header of the file, if some of them are empty or occur twice. Then `columns` has other names
    /// for them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub header: Option<Vec<String>>,
    /// The offset of the records in bytes: after the byte-order mark, the title rows and the header. Blank lines may
    /// follow.
    pub data_start: u64,
}

impl Head {
    /// The head of a file without columns, such as JSON Lines.
    pub const fn without_columns(dialect: Dialect, data_start: u64) -> Self {
        Self { dialect, columns: Vec::new(), header: None, data_start }
    }

    /// The names of the columns as the header of the file has them.
    pub fn own_header(&self) -> &[String] {
        self.header.as_deref().unwrap_or(&self.columns)
    }
}

/// Reads the head of a file from its first bytes. `whole` says that `prefix` is the whole file.
pub fn read_head(
    prefix: &[u8],
    whole: bool,
    params: &TextParams,
    content_type: Option<&str>,
    file_name: Option<&str>,
) -> Result<Head, HeadError> {
    let mark_length = byte_order_mark(prefix)?;
    let (title_rows, has_header) = params.header_place()?;
    let rows = FirstRows { prefix, from: mark_length, whole, title_rows };
    let format = match params.format.or_else(|| declared_format(content_type, file_name)) {
        Some(format) => format,
        None => rows.sniffed()?,
    };
    if format == Format::Jsonl {
        let given = [("headerRow", params.header_row), ("skipRows", params.skip_rows)];
        if let Some((param, _)) = given.into_iter().find(|(_, value)| value.is_some()) {
            return Err(HeadError::NoHeaderInJsonLines { param });
        }
        return Ok(Head::without_columns(Dialect { format, delimiter: b',' }, mark_length as u64));
    }
    let delimiter = match &params.delimiter {
        Some(text) => delimiter_of(text)?,
        None => sniff::delimiter(rows.after_titles()),
    };
    let dialect = Dialect { format, delimiter };
    rows.check_begin()?;
    let Some((data_start, first)) = rows.find(&dialect, has_header)? else {
        return Ok(Head::without_columns(dialect, prefix.len() as u64));
    };
    let mut cells = CellReader::new(delimiter);
    cells.read(&prefix[first.start as usize..first.content_end as usize]);
    if cells.count() > COLUMNS_MAX {
        return Err(HeadError::TooManyColumns { columns: cells.count() });
    }
    if !has_header {
        let columns = (1..=cells.count()).map(|number| format!("column{number}")).collect();
        return Ok(Head { dialect, columns, header: None, data_start });
    }
    let header = cells
        .texts()
        .map_err(|bad| HeadError::InvalidUtf8 { column: bad.index + 1, likely: likely_charset(prefix) })?;
    if let Some(index) = header.iter().position(|name| name.contains('\0')) {
        return Err(HeadError::NulInColumn { column: index + 1 });
    }
    let columns = unique_names(&header);
    let header = (columns != header).then_some(header);
    Ok(Head { dialect, columns, header, data_start: first.end })
}

/// The length of the byte-order mark. Marks of other encodings than UTF-8 are errors.
fn byte_order_mark(prefix: &[u8]) -> Result<usize, HeadError> {
    if prefix.starts_with(UTF8_MARK) {
        return Ok(UTF8_MARK.len());
    }
    // UTF-32 first: the mark of UTF-32 little-endian begins with the mark of UTF-16.
    let foreign: [(&[u8], &'static str); 4] =
        [(b"\xff\xfe\0\0", "UTF-32"), (b"\0\0\xfe\xff", "UTF-32"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")];
    match foreign.iter().find(|(mark, _)| prefix.starts_with(mark)) {
        Some((_, encoding)) => Err(HeadError::ForeignByteOrderMark { encoding }),
        None => Ok(0),
    }
}

/// The format that the media type or the name of a text declares.
pub fn declared_format(content_type: Option<&str>, file_name: Option<&str>) -> Option<Format> {
    content_type.and_then(format_of_content_type).or_else(|| file_name.and_then(format_of_file_name))
}

fn format_of_content_type(content_type: &str) -> Option<Format> {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/csv" | "application/csv" | "text/tab-separated-values" => Some(Format::Csv),
        "application/x-ndjson"
        | "application/ndjson"
        | "application/jsonl"
        | "application/x-jsonl"
        | "application/jsonlines"
        | "application/x-jsonlines"
        | "application/json-lines" => Some(Format::Jsonl),
        _ => None,
    }
}

fn format_of_file_name(file_name: &str) -> Option<Format> {
    let (_, extension) = file_name.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "csv" | "tsv" | "tab" => Some(Format::Csv),
        "jsonl" | "ndjson" => Some(Format::Jsonl),
        _ => None,
    }
}

fn delimiter_of(text: &str) -> Result<u8, HeadError> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err(HeadError::BadDelimiter { delimiter: shortened(text) }),
    }
}

struct FirstRows<'a> {
    prefix: &'a [u8],
    /// Where the first row begins, or blank lines before it.
    from: usize,
    /// True if `prefix` is the whole file.
    whole: bool,
    /// Number of rows before the header, or before the first item.
    title_rows: u32,
}

impl<'a> FirstRows<'a> {
    /// The text from the header on, as far as the title rows can be told apart without knowing the delimiter.
    fn after_titles(&self) -> &'a [u8] {
        let dialect = Dialect { format: Format::Csv, delimiter: b',' };
        let mut scanner = RecordScanner::new(&dialect, 0);
        let (text, mut rows, mut end) = (&self.prefix[self.from..], 0, 0);
        scanner.scan(text, |record| {
            rows += 1;
            if rows <= self.title_rows {
                end = record.end as usize;
            }
        });
        &text[end..]
    }

    /// The format by the content.
    fn sniffed(&self) -> Result<Format, HeadError> {
        let text = self.after_titles();
        match sniff::format(text, self.whole) {
            Some(format) => Ok(format),
            None => self.check_begin().and(Err(HeadError::UnknownFormat)),
        }
    }

    /// Checks that there is something like text where the header should begin, or the first item.
    fn check_begin(&self) -> Result<(), HeadError> {
        let text = self.after_titles();
        match text.iter().position(|byte| !matches!(byte, b'\n' | b'\r')) {
            None if !self.whole && !text.is_empty() => {
                Err(HeadError::OnlyBlankLines { examined: self.prefix.len() as u64 })
            }
            // Text in UTF-16 has no two of them beside each other.
            Some(begin) if text[begin..].starts_with(b"\0\0") => Err(HeadError::NulBytes),
            _ => Ok(()),
        }
    }

    /// Where the items begin if there is no header, and the row behind the title rows: the header, or the first item.
    /// `None` for a file without any row, and for one whose rows are all title rows.
    fn find(&self, dialect: &Dialect, has_header: bool) -> Result<Option<(u64, Span)>, HeadError> {
        let title_rows = self.title_rows as usize;
        let mut scanner = RecordScanner::new(dialect, self.from as u64);
        let mut rows = Vec::new();
        scanner.scan(&self.prefix[self.from..], |record| {
            if rows.len() <= title_rows {
                rows.push(record);
            }
        });
        if rows.len() <= title_rows {
            if !self.whole {
                return Err(HeadError::HeaderTooLong { limit: self.prefix.len() as u64 });
            }
            rows.extend(scanner.finish().map_err(|quote| HeadError::UnterminatedQuote { offset: quote.offset })?);
        }
        let data_start =
            title_rows.checked_sub(1).and_then(|last| rows.get(last)).map_or(self.from as u64, |row| row.end);
        match rows.get(title_rows) {
            Some(first) => Ok(Some((data_start, *first))),
            None if rows.len() < title_rows || (has_header && title_rows > 0) => {
                Err(HeadError::TooFewRows { rows: rows.len(), title_rows })
            }
            None => Ok(None),
        }
    }
}
