//! Errors of decoding.

use std::io;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Maximum number of names that a message lists. It gives the number of the others.
const NAMES_LISTED: usize = 20;

/// Why a file cannot be decoded to text.
///
/// Except for [`Source`](DecodeError::Source), the user must change the file. The message is for the user: it says what
/// is wrong, where, and what to do. It does not quote the content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes of the file could not be read. This says nothing about the file itself.
    #[error("reading the file failed")]
    Source(#[source] io::Error),
    #[error(
        "The {format} is damaged {at}: {problem}. Check that the original file opens without errors, export it again, and \
         upload the new file."
    )]
    Corrupt {
        /// The kind of file, such as "gzip file".
        format: &'static str,
        at: Place,
        problem: &'static str,
        /// The error of the parser. It may quote the content of the file.
        #[source]
        source: Option<Cause>,
    },
    #[error("The file expands to more than the maximum of {limit} bytes. Split it into smaller files.")]
    ExpandsTooFar {
        /// [`Limits::expanded_max_bytes`](crate::Limits::expanded_max_bytes).
        limit: u64,
    },
    /// The first rows of the file lie too deep in it.
    #[error(
        "The first rows of the file were not found in its first {limit} bytes, unpacked, or not within {seconds} seconds. \
         Remove empty rows and formatting before the first row, or save it as CSV."
    )]
    BeginsTooLate {
        /// [`Limits::expanded_max_bytes`](crate::Limits::expanded_max_bytes).
        limit: u64,
        /// [`Limits::busy_max`](crate::Limits::busy_max), in seconds.
        seconds: u64,
    },
    /// The compression ratio is far higher than that of real data.
    #[error(
        "The file expands to more than {limit} times its size, like a decompression bomb. Upload it without compression, or \
         split it into smaller files."
    )]
    ExpandsTooSteeply {
        /// [`Limits::ratio_max`](crate::Limits::ratio_max).
        limit: u64,
    },
    /// The file was compressed with a window that is too large to hold in memory.
    #[error(
        "The zstd file needs a decompression window of more than {limit} bytes. Compress it again without `--long` or \
         `--ultra`."
    )]
    WindowTooLarge {
        /// [`Limits::zstd_window_max_bytes`](crate::Limits::zstd_window_max_bytes).
        limit: u64,
    },
    #[error("The workbook has no sheet `{sheet}`; it has {}. Set the param `sheet` to one of these.", listed(sheets))]
    NoSuchSheet {
        /// The requested name, shortened.
        sheet: String,
        /// The names of the worksheets, shortened.
        sheets: Vec<String>,
    },
    /// The workbook has no worksheet, or no visible one.
    #[error(
        "The workbook has no {kind}worksheet. Save it with the data in a visible sheet, or name a hidden sheet in the param \
         `sheet`."
    )]
    NoSheet {
        /// "visible " or empty.
        kind: &'static str,
    },
    /// The sheet or another part of the workbook is too large.
    #[error("The workbook has more than the maximum of {limit} {what}. Save the sheet as CSV and upload that.")]
    SheetTooLarge {
        /// The unit of the limit.
        what: &'static str,
        limit: u64,
    },
    /// A part of a record is too long to hold in memory.
    #[error("{what} in row {row} has more than the maximum of {limit} {unit}. Shorten it.")]
    RecordTooLong {
        /// The part.
        what: &'static str,
        /// The 1-based row, as the format counts it.
        row: u64,
        limit: u64,
        unit: &'static str,
    },
    #[error("The workbook {what}, which is not supported. Save it as an ordinary .xlsx workbook or as CSV.")]
    UnsupportedXlsx {
        /// The feature, as a predicate of the sentence.
        what: &'static str,
    },
    #[error(
        "The zip archive {what}, which is not supported. Unpack it and send its files, for example compressed with gzip."
    )]
    UnsupportedZip {
        /// The feature, as a predicate of the sentence.
        what: String,
    },
    #[error("The Parquet file {what}, which is not supported. {advice}")]
    UnsupportedParquet {
        /// The feature, as a predicate of the sentence.
        what: String,
        /// Advice to the user, as a sentence.
        advice: &'static str,
    },
}

impl DecodeError {
    /// The stable code of the problem, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Source(_) => "source_unreadable",
            Self::Corrupt { .. } => "corrupt_file",
            Self::ExpandsTooFar { .. } | Self::ExpandsTooSteeply { .. } => "expands_too_far",
            Self::BeginsTooLate { .. } => "begins_too_late",
            Self::WindowTooLarge { .. } => "window_too_large",
            Self::NoSuchSheet { .. } | Self::NoSheet { .. } => "no_such_sheet",
            Self::SheetTooLarge { .. } => "sheet_too_large",
            Self::RecordTooLong { .. } => "record_too_long",
            Self::UnsupportedXlsx { .. } => "unsupported_xlsx",
            Self::UnsupportedZip { .. } => "unsupported_zip",
            Self::UnsupportedParquet { .. } => "unsupported_parquet",
        }
    }

    /// True if the bytes of the file could not be read. Then a retry can help.
    pub fn is_source(&self) -> bool {
        matches!(self, Self::Source(_))
    }
}

/// A position in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Place {
    /// This byte of the file.
    Byte(u64),
    /// This byte of the decompressed text.
    TextByte(u64),
    /// This part of a workbook.
    Part(String),
    /// This 1-based row of the sheet.
    SheetRow(u64),
    /// The footer of a Parquet file, which describes the columns.
    Footer,
    /// This column of this row group.
    Column {
        /// The 1-based column.
        column: usize,
        /// The 1-based row group.
        row_group: usize,
    },
    Somewhere,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Byte(byte) => write!(f, "at byte {byte}"),
            Self::TextByte(byte) => write!(f, "at byte {byte} of its text"),
            Self::Part(part) => write!(f, "in its part `{part}`"),
            Self::SheetRow(row) => write!(f, "in row {row} of the sheet"),
            Self::Footer => write!(f, "in its footer"),
            Self::Column { column, row_group } => write!(f, "in column {column} of row group {row_group}"),
            Self::Somewhere => write!(f, "in its structure"),
        }
    }
}

fn listed(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(NAMES_LISTED).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(NAMES_LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Shortens the user's text for a message.
pub(crate) fn shortened(text: &str) -> String {
    const QUOTED_CHARS: usize = 60;
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
