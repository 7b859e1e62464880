//! Errors of the detection of a file's format.

/// Why the format of a file cannot be determined or is not supported.
///
/// The message is for the user who uploaded the file, who must change the file or the params.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    #[error("The param `format` is `{format}`, but it must be one of `csv`, `jsonl`, `json`, `xlsx` and `parquet`.")]
    UnknownFormat {
        /// The user's text, shortened.
        format: String,
    },
    #[error("The param `compression` is `{compression}`, but it must be one of `gzip`, `zstd` and `none`.")]
    UnknownCompression {
        /// The user's text, shortened.
        compression: String,
    },
    #[error(
        "The encoding `{encoding}` is not supported. Name one of the WHATWG encoding standard, such as `utf-8`, `utf-16`, \
         `windows-1252`, `shift_jis` or `gb18030`, or convert the file to UTF-8."
    )]
    UnsupportedEncoding {
        /// The user's text, shortened.
        encoding: String,
    },
    #[error("The file begins with the byte-order mark of UTF-32, which is not supported. Convert the file to UTF-8.")]
    Utf32,
    #[error("The param `{param}` is `{said}`, but the file is {found}. Correct or remove the param.")]
    Mismatch { param: &'static str, said: String, found: &'static str },
    #[error("The param `{param}` is only for {only}, but the file is {found}. Remove the param.")]
    MeaninglessParam { param: &'static str, only: &'static str, found: &'static str },
    /// An Excel file from before 2007, or a password-protected one: their first bytes look the same.
    #[error(
        "The file is an old Excel workbook (.xls) or is protected with a password. Save it as .xlsx without a password."
    )]
    OldExcel,
    #[error("The file is {found}, which is not supported. Save it as .xlsx or as CSV.")]
    OtherSpreadsheet { found: &'static str },
    #[error(
        "The file is {found}, which can contain many files. Upload the file inside it, compressed with gzip if necessary."
    )]
    Archive { found: &'static str },
    #[error(
        "The file is a zip archive. A job reads the files in it if it is the only upload of the job: send its `fileGuid`. \
         Everywhere else unpack it."
    )]
    Zip,
    #[error("The file is compressed with {found}, which is not supported. Use gzip or zstd.")]
    UnsupportedCompression { found: &'static str },
    /// A compressed file that contains a compressed or binary file instead of text.
    #[error(
        "The file is compressed with {outer} but contains {inner} instead of text. Decompress it once and upload that."
    )]
    Nested { outer: &'static str, inner: &'static str },
    #[error("The Parquet file is encrypted, which is not supported. Write it without encryption.")]
    EncryptedParquet,
}

impl FormatError {
    /// The stable code of the problem, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownFormat { .. } => "unknown_format",
            Self::UnknownCompression { .. } => "unknown_compression",
            Self::UnsupportedEncoding { .. } | Self::Utf32 => "unsupported_encoding",
            Self::Mismatch { .. } | Self::MeaninglessParam { .. } => "format_mismatch",
            Self::OldExcel | Self::OtherSpreadsheet { .. } => "unsupported_spreadsheet",
            Self::Archive { .. } | Self::Zip => "archive",
            Self::UnsupportedCompression { .. } | Self::Nested { .. } => "unsupported_compression",
            Self::EncryptedParquet => "unsupported_parquet",
        }
    }
}
