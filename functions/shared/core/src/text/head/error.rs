//! Why the head of a file cannot be read.

use super::limits::{COLUMNS_MAX, TITLE_ROWS_MAX};

/// Why a file cannot be read at all. The message is for the user who uploaded it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeadError {
    /// Params, content type, file name and content do not determine the format.
    #[error(
        "The format of the file cannot be determined from its content type, its name or its content. Set the param `format` \
         to `csv` or `jsonl`."
    )]
    UnknownFormat,
    #[error("The param `{param}` may be at most {TITLE_ROWS_MAX}. Remove the rows before the header from the file.")]
    TooManyTitleRows { param: &'static str },
    /// The params `header` and `headerRow` contradict each other.
    #[error("The params `header` and `headerRow` contradict each other. Remove one of them.")]
    HeaderContradiction,
    /// A param about the header, for a file that has none.
    #[error("The param `{param}` is only for CSV and workbooks, but the file has JSON lines. Remove the param.")]
    NoHeaderInJsonLines { param: &'static str },
    /// The file has fewer rows than stand before the header.
    #[error(
        "The file has {rows} rows, but `skipRows` and `headerRow` say that {title_rows} rows stand before its header or its \
         first item. Correct the params. Blank lines do not count as rows."
    )]
    TooFewRows {
        rows: usize,
        /// Expected number of rows before the header.
        title_rows: usize,
    },
    #[error(
        "The header has {columns} columns, but a file may have at most {COLUMNS_MAX}. Remove columns from the file."
    )]
    TooManyColumns { columns: usize },
    /// The file begins with nothing but blank lines.
    #[error(
        "The file has no header, and no row: its first {examined} bytes are blank lines. Remove the blank lines at its \
         beginning."
    )]
    OnlyBlankLines { examined: u64 },
    #[error(
        "The file has no header: where it should be are NUL bytes, so the file is not text. It may be damaged, or of a \
         format that is not supported."
    )]
    NulBytes,
    /// The file begins with the byte-order mark of an unsupported encoding.
    #[error(
        "The file begins with the byte-order mark of {encoding}, which is not supported. Convert the file to UTF-8."
    )]
    ForeignByteOrderMark { encoding: &'static str },
    /// The param `delimiter` is not a valid delimiter.
    #[error(
        "The param `delimiter` is `{delimiter}`, but it must be one ASCII character other than a quote or a line end."
    )]
    BadDelimiter {
        /// The user's text, shortened.
        delimiter: String,
    },
    /// The header does not end within the bytes that were examined.
    #[error(
        "The header of the file, with the rows before it, does not end within the first {limit} bytes. Shorten the header, or \
         close a quote in it that is never closed."
    )]
    HeaderTooLong { limit: u64 },
    /// The file ends inside a quoted cell before its first item.
    #[error("The quote that opens at byte {offset} of the file, before its first item, is never closed. Close it.")]
    UnterminatedQuote { offset: u64 },
    #[error("The name of column {column} in the header is not valid UTF-8. {}", advice(*likely))]
    InvalidUtf8 {
        /// The 1-based number of the column.
        column: usize,
        /// The likely charset of the file.
        likely: Option<&'static str>,
    },
    /// A column name contains a NUL byte. This happens if UTF-16 is read as UTF-8.
    #[error(
        "The name of column {column} contains a NUL byte; the file looks like UTF-16. Set the param `encoding` to `utf-16le` or \
         `utf-16be`, or convert the file to UTF-8."
    )]
    NulInColumn { column: usize },
}

fn advice(likely: Option<&'static str>) -> String {
    match likely {
        Some(charset) => format!("The file looks like {charset}. If it is, set the param `encoding` to `{charset}`."),
        None => "Convert the file to UTF-8.".to_owned(),
    }
}

impl HeadError {
    /// The stable code of the problem, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownFormat => "unknown_format",
            Self::ForeignByteOrderMark { .. } => "unsupported_encoding",
            Self::TooManyTitleRows { .. } | Self::HeaderContradiction | Self::TooFewRows { .. } => "bad_header_row",
            Self::NoHeaderInJsonLines { .. } => "format_mismatch",
            Self::TooManyColumns { .. } => "too_many_columns",
            Self::OnlyBlankLines { .. } | Self::NulBytes => "no_header",
            Self::BadDelimiter { .. } => "bad_delimiter",
            Self::HeaderTooLong { .. } => "header_too_long",
            Self::UnterminatedQuote { .. } => "unterminated_quote",
            Self::InvalidUtf8 { .. } => "invalid_utf8",
            Self::NulInColumn { .. } => "nul_in_column",
        }
    }
}
