//! Reads the head of a file: its format, delimiter and columns, and the start of its records.

use serde::{Deserialize, Serialize};

use super::UTF8_MARK;
use super::cells::CellReader;
use super::format::{Dialect, Format};
use super::scan::{RecordScanner, Span};

/// The delimiters that are detected in the first line. If two are equally frequent, the earlier one in this list wins.
const SNIFFED_DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Maximum number of characters of the user's input that a message quotes.
const QUOTED_CHARS: usize = 60;

/// The params of a job that describe the text of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TextParams {
    /// The format. Default: from the content type, else from the file name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// One ASCII character (or `\t`). Default: detected in the first line. Ignored for JSON Lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// Whether the first record names the columns. Default: true. Ignored for JSON Lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// The encoding. Default: `utf-8`. Only UTF-8 and its subset `us-ascii` are supported here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
}

/// The head of a file, as read from its first bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// How to read the records.
    pub dialect: Dialect,
    /// The names of the columns: unique and not empty. No columns for JSON Lines and for an empty file.
    pub columns: Vec<String>,
    /// The offset of the records in bytes: after the byte-order mark and the header. Blank lines may follow.
    pub data_start: u64,
}

/// Why a file cannot be read at all. The message is for the user who uploaded it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeadError {
    /// Params, content type and file name do not determine the format.
    #[error(
        "The format of the file cannot be determined from its content type or its name. Set the param `format` to `csv` or \
         `jsonl`."
    )]
    UnknownFormat,
    /// The param `encoding` names an unsupported encoding.
    #[error("The encoding `{encoding}` is not supported. Convert the file to UTF-8.")]
    UnsupportedEncoding {
        /// The user's text, shortened.
        encoding: String,
    },
    /// The file begins with the byte-order mark of an unsupported encoding.
    #[error(
        "The file begins with the byte-order mark of {encoding}, which is not supported. Convert the file to UTF-8."
    )]
    ForeignByteOrderMark {
        /// The encoding with that mark.
        encoding: &'static str,
    },
    /// The param `delimiter` is not a valid delimiter.
    #[error(
        "The param `delimiter` is `{delimiter}`, but it must be one ASCII character other than a quote or a line end."
    )]
    BadDelimiter {
        /// The user's text, shortened.
        delimiter: String,
    },
    /// The first record does not end within the bytes that were examined.
    #[error(
        "The first record of the file does not end within its first {limit} bytes. Shorten the header, or close a quote in \
         it that is never closed."
    )]
    HeaderTooLong {
        /// The number of bytes that were examined.
        limit: u64,
    },
    /// The file ends inside a quoted cell of its first record.
    #[error("The quote that opens at byte {offset} of the file, in its first record, is never closed. Close it.")]
    UnterminatedQuote {
        /// Offset of the opening quote, in bytes.
        offset: u64,
    },
    /// A column name is not UTF-8.
    #[error("The name of column {column} in the header is not valid UTF-8. Convert the file to UTF-8.")]
    InvalidUtf8 {
        /// The 1-based number of the column.
        column: usize,
    },
    /// A column name contains a NUL byte. This happens if UTF-16 is read as UTF-8.
    #[error("The name of column {column} contains a NUL byte; the file looks like UTF-16. Convert it to UTF-8.")]
    NulInColumn {
        /// The 1-based number of the column.
        column: usize,
    },
    /// A column has no name.
    #[error("Column {column} of the header has no name. Give it a name, or remove it from the file.")]
    EmptyColumn {
        /// The 1-based number of the column.
        column: usize,
    },
    /// Two columns have the same name.
    #[error("Columns {first} and {second} of the header are both named `{name}`. Give each column a unique name.")]
    DuplicateColumn {
        /// The name, shortened.
        name: String,
        /// The 1-based number of the earlier column.
        first: usize,
        /// The 1-based number of the later column.
        second: usize,
    },
}

impl HeadError {
    /// The stable code of the problem, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownFormat => "unknown_format",
            Self::UnsupportedEncoding { .. } | Self::ForeignByteOrderMark { .. } => "unsupported_encoding",
            Self::BadDelimiter { .. } => "bad_delimiter",
            Self::HeaderTooLong { .. } => "header_too_long",
            Self::UnterminatedQuote { .. } => "unterminated_quote",
            Self::InvalidUtf8 { .. } => "invalid_utf8",
            Self::EmptyColumn { .. } => "empty_column",
            Self::NulInColumn { .. } => "nul_in_column",
            Self::DuplicateColumn { .. } => "duplicate_column",
        }
    }
}

/// Reads the head of a file from its first bytes. `whole` says that `prefix` is the whole file.
///
/// # Errors
///
/// [`HeadError`]. The user must change the params or the file.
pub fn read_head(
    prefix: &[u8],
    whole: bool,
    params: &TextParams,
    content_type: Option<&str>,
    file_name: Option<&str>,
) -> Result<Head, HeadError> {
    let mark_length = byte_order_mark(prefix, params)?;
    let format = params
        .format
        .or_else(|| content_type.and_then(format_of_content_type))
        .or_else(|| file_name.and_then(format_of_file_name))
        .ok_or(HeadError::UnknownFormat)?;
    let data_start = mark_length as u64;
    if format == Format::Jsonl {
        return Ok(Head { dialect: Dialect { format, delimiter: b',' }, columns: Vec::new(), data_start });
    }
    let delimiter = match &params.delimiter {
        Some(text) => delimiter_of(text)?,
        None => sniff_delimiter(&prefix[mark_length..]),
    };
    let dialect = Dialect { format, delimiter };
    let Some(first) = first_record(prefix, mark_length, whole, &dialect)? else {
        return Ok(Head { dialect, columns: Vec::new(), data_start: prefix.len() as u64 });
    };
    let mut cells = CellReader::new(delimiter);
    cells.read(&prefix[first.start as usize..first.content_end as usize]);
    if params.header == Some(false) {
        let columns = (1..=cells.count()).map(|number| format!("column{number}")).collect();
        return Ok(Head { dialect, columns, data_start });
    }
    let columns = cells.texts().map_err(|bad| HeadError::InvalidUtf8 { column: bad.index + 1 })?;
    check_names(&columns)?;
    Ok(Head { dialect, columns, data_start: first.end })
}

/// The length of the byte-order mark. A UTF-8 mark takes precedence over the param `encoding`; other marks are errors.
fn byte_order_mark(prefix: &[u8], params: &TextParams) -> Result<usize, HeadError> {
    if prefix.starts_with(UTF8_MARK) {
        return Ok(UTF8_MARK.len());
    }
    // UTF-32 first: the mark of UTF-32 little-endian begins with the mark of UTF-16.
    let foreign: [(&[u8], &'static str); 4] =
        [(b"\xff\xfe\0\0", "UTF-32"), (b"\0\0\xfe\xff", "UTF-32"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")];
    if let Some((_, encoding)) = foreign.iter().find(|(mark, _)| prefix.starts_with(mark)) {
        return Err(HeadError::ForeignByteOrderMark { encoding });
    }
    match &params.encoding {
        Some(encoding)
            if !["utf-8", "utf8", "us-ascii", "ascii"].contains(&encoding.trim().to_lowercase().as_str()) =>
        {
            Err(HeadError::UnsupportedEncoding { encoding: shortened(encoding) })
        }
        _ => Ok(0),
    }
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

/// The most frequent candidate in the first line that is not blank. Quoted parts do not count.
fn sniff_delimiter(bytes: &[u8]) -> u8 {
    let mut counts = [0_u64; SNIFFED_DELIMITERS.len()];
    let (mut quoted, mut cell_start) = (false, true);
    for &byte in bytes.iter().skip_while(|byte| matches!(byte, b'\n' | b'\r')) {
        match byte {
            // An escaped quote closes and reopens the quotes, with the same result here.
            b'"' if quoted => (quoted, cell_start) = (false, true),
            b'"' => (quoted, cell_start) = (cell_start, false),
            _ if quoted => {}
            b'\n' | b'\r' => break,
            _ => {
                let candidate = SNIFFED_DELIMITERS.iter().position(|&delimiter| delimiter == byte);
                if let Some(index) = candidate {
                    counts[index] += 1;
                }
                cell_start = candidate.is_some();
            }
        }
    }
    let best = (0..counts.len()).rev().max_by_key(|&index| counts[index]).unwrap_or(0);
    SNIFFED_DELIMITERS[best]
}

/// The position of the first record, if the file has one.
fn first_record(prefix: &[u8], from: usize, whole: bool, dialect: &Dialect) -> Result<Option<Span>, HeadError> {
    let mut scanner = RecordScanner::new(dialect, from as u64);
    let mut first = None;
    scanner.scan(&prefix[from..], |record| {
        first.get_or_insert(record);
    });
    match first {
        Some(record) => Ok(Some(record)),
        None if whole => scanner.finish().map_err(|quote| HeadError::UnterminatedQuote { offset: quote.offset }),
        None => Err(HeadError::HeaderTooLong { limit: prefix.len() as u64 }),
    }
}

fn check_names(columns: &[String]) -> Result<(), HeadError> {
    let mut seen = std::collections::HashMap::with_capacity(columns.len());
    for (index, name) in columns.iter().enumerate() {
        if name.is_empty() {
            return Err(HeadError::EmptyColumn { column: index + 1 });
        }
        if name.contains('\0') {
            return Err(HeadError::NulInColumn { column: index + 1 });
        }
        if let Some(first) = seen.insert(name.as_str(), index) {
            return Err(HeadError::DuplicateColumn { name: shortened(name), first: first + 1, second: index + 1 });
        }
    }
    Ok(())
}

/// Shortens the user's text for a message.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
