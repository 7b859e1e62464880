//! Why it cannot be told how a file is to be read.

/// Why it cannot be told how a file is to be read, in words for the user who sent it: the file or the params must change.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The param `format` names none.
    #[error("The param `format` is `{format}`, but it must be one of `csv`, `jsonl`, `xlsx` and `parquet`.")]
    UnknownFormat {
        /// As the user wrote it, cut short.
        format: String,
    },
    /// The param `compression` names none.
    #[error("The param `compression` is `{compression}`, but it must be one of `gzip`, `zstd` and `none`.")]
    UnknownCompression {
        /// As the user wrote it, cut short.
        compression: String,
    },
    /// The param `encoding` names none that is read.
    #[error(
        "The encoding `{encoding}` is not supported. Supported are `utf-8`, `utf-16`, `utf-16le`, `utf-16be`, `windows-1252` \
         and `iso-8859-1` (`latin1`); convert the file to one of these."
    )]
    UnsupportedEncoding {
        /// As the user wrote it, cut short.
        encoding: String,
    },
    /// The file begins with the mark of an encoding that is not read.
    #[error("The file begins with the byte-order mark of UTF-32, which is not supported. Convert the file to UTF-8.")]
    Utf32,
    /// A param says one thing, the file's bytes another.
    #[error("The param `{param}` is `{said}`, but the file is {found}. Correct the param, or leave it out.")]
    Mismatch {
        /// The param.
        param: &'static str,
        /// What it says.
        said: String,
        /// What the bytes are.
        found: &'static str,
    },
    /// A param is given that means nothing for this file.
    #[error("The param `{param}` is only for {only}, but the file is {found}. Leave it out.")]
    MeaninglessParam {
        /// The param.
        param: &'static str,
        /// What it is for.
        only: &'static str,
        /// What the bytes are.
        found: &'static str,
    },
    /// An Excel file of before 2007, or one with a password, which looks the same from outside.
    #[error("The file is an old Excel workbook (.xls) or one with a password. Save it as .xlsx without a password.")]
    OldExcel,
    /// A spreadsheet of another kind.
    #[error("The file is {found}, which is not supported. Save it as .xlsx or as CSV.")]
    OtherSpreadsheet {
        /// What it is.
        found: &'static str,
    },
    /// An archive of files.
    #[error(
        "The file is {found}, which may hold many files. Upload the file inside it, compressed with gzip if need be."
    )]
    Archive {
        /// What it is.
        found: &'static str,
    },
    /// A compression that is not read.
    #[error("The file is compressed with {found}, which is not supported. Use gzip or zstd.")]
    UnsupportedCompression {
        /// What it is compressed with.
        found: &'static str,
    },
    /// A file that is compressed already was compressed once more.
    #[error("The file holds, compressed with {outer}, {inner}. Decompress it once and upload that.")]
    Nested {
        /// What is outside.
        outer: &'static str,
        /// What is inside.
        inner: &'static str,
    },
    /// The Parquet file is encrypted.
    #[error("The Parquet file is encrypted, which is not supported. Write it without encryption.")]
    EncryptedParquet,
}

impl FormatError {
    /// A stable name of the problem, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownFormat { .. } => "unknown_format",
            Self::UnknownCompression { .. } => "unknown_compression",
            Self::UnsupportedEncoding { .. } | Self::Utf32 => "unsupported_encoding",
            Self::Mismatch { .. } | Self::MeaninglessParam { .. } => "format_mismatch",
            Self::OldExcel | Self::OtherSpreadsheet { .. } => "unsupported_spreadsheet",
            Self::Archive { .. } => "archive",
            Self::UnsupportedCompression { .. } | Self::Nested { .. } => "unsupported_compression",
            Self::EncryptedParquet => "unsupported_parquet",
        }
    }
}
