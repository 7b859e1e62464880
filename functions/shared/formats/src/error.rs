//! Why a file cannot be turned into text.

use std::io;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Names listed in a message; more are counted only.
const NAMES_LISTED: usize = 20;

/// Why a file cannot be turned into text. Every variant but [`Source`](DecodeError::Source) is the file's owner's to mend,
/// and its message is for them: it says what is wrong, where, and what to do, and quotes no content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes of the file could not be had; nothing is known about the file itself.
    #[error("reading the file failed")]
    Source(#[source] io::Error),
    /// The file is not what it begins as.
    #[error(
        "The {format} is damaged {at}: {problem}. Check that it opens where it comes from, export it again, and upload that."
    )]
    Corrupt {
        /// What was being read, "gzip file" say.
        format: &'static str,
        /// Where the problem is.
        at: Place,
        /// What the problem is.
        problem: &'static str,
        /// What the parser says, which may quote the file's content.
        #[source]
        source: Option<Cause>,
    },
    /// More text comes out of the file than may.
    #[error("The file expands to more than {limit} bytes, the most that is read. Split it into smaller files.")]
    ExpandsTooFar {
        /// [`Limits::expanded_max_bytes`](crate::Limits::expanded_max_bytes).
        limit: u64,
    },
    /// Far more comes out of each byte of the file than of a file made of data.
    #[error(
        "The file expands to more than {limit} times its size, as a decompression bomb does. Upload it without compression, \
         or split it into smaller files."
    )]
    ExpandsTooSteeply {
        /// [`Limits::ratio_max`](crate::Limits::ratio_max).
        limit: u64,
    },
    /// The file was compressed with a larger window than is held in memory.
    #[error(
        "The zstd file needs a window of more than {limit} bytes to be decompressed. Compress it again without `--long` or \
         `--ultra`."
    )]
    WindowTooLarge {
        /// [`Limits::zstd_window_max_bytes`](crate::Limits::zstd_window_max_bytes).
        limit: u64,
    },
    /// The workbook has no such sheet.
    #[error("The workbook has no sheet `{sheet}`; it has {}. Set the param `sheet` to one of these.", listed(sheets))]
    NoSuchSheet {
        /// What was asked for, cut short.
        sheet: String,
        /// The names of its worksheets, cut short.
        sheets: Vec<String>,
    },
    /// The workbook has no worksheet at all, or none that is visible.
    #[error(
        "The workbook has no {kind}worksheet to read. Save it with the data in a visible sheet, or name a hidden one by the \
         param `sheet`."
    )]
    NoSheet {
        /// "visible " or nothing.
        kind: &'static str,
    },
    /// The sheet is larger than is read.
    #[error("The workbook has more than {limit} {what}, the most that is read. Save the sheet as CSV and upload that.")]
    SheetTooLarge {
        /// Of what there is too much.
        what: &'static str,
        /// How much there may be.
        limit: u64,
    },
    /// A piece of a record is longer than is held in memory.
    #[error("{what} in row {row} has more than {limit} {unit}, the most that is read. Shorten it.")]
    RecordTooLong {
        /// What it is.
        what: &'static str,
        /// The row, counted as the format counts it: a sheet's first one is 1, and so is a Parquet file's.
        row: u64,
        /// How much it may be.
        limit: u64,
        /// Of what.
        unit: &'static str,
    },
    /// The workbook is of a kind that is not read.
    #[error("The workbook {what}, which is not supported. Save it as an ordinary .xlsx workbook or as CSV.")]
    UnsupportedXlsx {
        /// What it does or is.
        what: &'static str,
    },
    /// The Parquet file is of a kind that is not read.
    #[error("The Parquet file {what}, which is not supported. {advice}")]
    UnsupportedParquet {
        /// What it does or is.
        what: String,
        /// What to do.
        advice: &'static str,
    },
}

impl DecodeError {
    /// A stable name of the problem, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Source(_) => "source_unreadable",
            Self::Corrupt { .. } => "corrupt_file",
            Self::ExpandsTooFar { .. } | Self::ExpandsTooSteeply { .. } => "expands_too_far",
            Self::WindowTooLarge { .. } => "window_too_large",
            Self::NoSuchSheet { .. } | Self::NoSheet { .. } => "no_such_sheet",
            Self::SheetTooLarge { .. } => "sheet_too_large",
            Self::RecordTooLong { .. } => "record_too_long",
            Self::UnsupportedXlsx { .. } => "unsupported_xlsx",
            Self::UnsupportedParquet { .. } => "unsupported_parquet",
        }
    }

    /// Whether the file's bytes could not be had, which says nothing about the file: reading it again may help.
    pub fn is_source(&self) -> bool {
        matches!(self, Self::Source(_))
    }
}

/// Where in a file something is.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Place {
    /// At this byte of the file.
    Byte(u64),
    /// At this byte of the text that the file holds compressed.
    TextByte(u64),
    /// In this part of a workbook.
    Part(String),
    /// In this row of the sheet, counted from 1.
    SheetRow(u64),
    /// In the description of the columns at the file's end.
    Footer,
    /// In this column of this row group, both counted from 1.
    Column {
        /// The column.
        column: usize,
        /// The row group.
        row_group: usize,
    },
    /// In its structure, somewhere.
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

/// The beginning of a user's own words, fit for a message.
pub(crate) fn shortened(text: &str) -> String {
    const QUOTED_CHARS: usize = 60;
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
