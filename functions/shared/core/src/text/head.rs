//! What the first bytes of a file say about the rest: its format, its delimiter, its columns and where its records begin.

use serde::{Deserialize, Serialize};

use super::UTF8_MARK;
use super::cells::CellReader;
use super::format::{Dialect, Format};
use super::scan::{RecordScanner, Span};

/// The delimiters looked for in the first line; of two equally frequent ones the earlier wins.
const SNIFFED_DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Characters of the user's own words repeated in a message.
const QUOTED_CHARS: usize = 60;

/// What a user may say about a file's text, as found among a job's params.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TextParams {
    /// Default: from the content type, then from the file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// One ASCII character (or `\t`). Default: found in the first line. JSON Lines files have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// Whether the first record names the columns; default true. JSON Lines files have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// Default `utf-8`, which (with its subset `us-ascii`) is the only one read so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
}

/// What the first bytes of a file have said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// How to read the records.
    pub dialect: Dialect,
    /// Names of the columns, each one once and none empty. None for JSON Lines and for an empty file.
    pub columns: Vec<String>,
    /// Where the records begin: after the byte-order mark and the header. Blank lines may follow.
    pub data_start: u64,
}

/// Why a file cannot be read at all, in words for the user who sent it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeadError {
    /// Neither params nor content type nor file name tell.
    #[error(
        "The file's format cannot be told from its content type or its name. Set the param `format` to `csv` or `jsonl`."
    )]
    UnknownFormat,
    /// The param `encoding` names another encoding.
    #[error("The encoding `{encoding}` is not supported. Convert the file to UTF-8.")]
    UnsupportedEncoding {
        /// As the user wrote it, cut short.
        encoding: String,
    },
    /// The file begins with the mark of another encoding.
    #[error(
        "The file begins with the byte-order mark of {encoding}, which is not supported. Convert the file to UTF-8."
    )]
    ForeignByteOrderMark {
        /// The encoding of that mark.
        encoding: &'static str,
    },
    /// The param `delimiter` cannot be one.
    #[error(
        "The param `delimiter` is `{delimiter}`, but it must be one ASCII character other than a quote or a line end."
    )]
    BadDelimiter {
        /// As the user wrote it, cut short.
        delimiter: String,
    },
    /// The first record does not end within the bytes looked at.
    #[error(
        "The first record of the file does not end within its first {limit} bytes. Shorten the header, or look for a \
         quote in it that is never closed."
    )]
    HeaderTooLong {
        /// How many bytes were looked at.
        limit: u64,
    },
    /// The file ends within a quoted cell of its first record.
    #[error("The quote that opens at byte {offset} of the file, in its first record, is never closed. Close it.")]
    UnterminatedQuote {
        /// Offset of the opening quote.
        offset: u64,
    },
    /// A column's name is not UTF-8.
    #[error("The name of column {column} in the header is not valid UTF-8. Convert the file to UTF-8.")]
    InvalidUtf8 {
        /// Number of the column, the first one being 1.
        column: usize,
    },
    /// A column's name holds NUL, as text in UTF-16 read byte by byte does.
    #[error("The name of column {column} holds a NUL byte; the file looks like UTF-16. Convert it to UTF-8.")]
    NulInColumn {
        /// Number of the column, counted from 1.
        column: usize,
    },
    /// A column has no name.
    #[error("Column {column} of the header has no name. Name it, or remove it from the file.")]
    EmptyColumn {
        /// Number of the column, the first one being 1.
        column: usize,
    },
    /// Two columns have one name.
    #[error("Columns {first} and {second} of the header are both named `{name}`. Give each column a name of its own.")]
    DuplicateColumn {
        /// The name, cut short.
        name: String,
        /// Number of the earlier column, the first one being 1.
        first: usize,
        /// Number of the later column.
        second: usize,
    },
}

impl HeadError {
    /// A stable name of the problem, for programs.
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

/// Reads the head of a file from its first bytes, `whole` saying that there are no more.
///
/// # Errors
///
/// [`HeadError`], always the user's to mend: the params or the file must change.
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

/// Length of the byte-order mark. A UTF-8 one wins over the param, any other cannot be read.
fn byte_order_mark(prefix: &[u8], params: &TextParams) -> Result<usize, HeadError> {
    if prefix.starts_with(UTF8_MARK) {
        return Ok(UTF8_MARK.len());
    }
    // The mark of UTF-32 little-endian begins with that of UTF-16, so it comes first.
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

/// The most frequent candidate of the first line that is not blank, quoted parts left out.
fn sniff_delimiter(bytes: &[u8]) -> u8 {
    let mut counts = [0_u64; SNIFFED_DELIMITERS.len()];
    let (mut quoted, mut cell_start) = (false, true);
    for &byte in bytes.iter().skip_while(|byte| matches!(byte, b'\n' | b'\r')) {
        match byte {
            // An escaped quote closes and opens again, which comes to the same here.
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

/// Where the first record lies, if the file has any.
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

/// The beginning of a user's own words, fit for a message.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
