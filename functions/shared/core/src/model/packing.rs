//! How an upload that is not plain UTF-8 text is unpacked to text.

use serde::{Deserialize, Serialize};

/// The packing of an upload's text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Packing {
    /// Text that is compressed, in another character set, or both. Decoded as a stream.
    Text {
        /// How it is compressed, if it is.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        compression: Option<Compression>,
        /// The character set, if it is not UTF-8.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        charset: Option<Charset>,
    },
    /// An Excel workbook, of which one sheet becomes CSV. Needs a temporary file.
    Xlsx {
        /// The sheet's name; the first one by default.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        sheet: Option<String>,
    },
    /// A Parquet file, whose rows become JSON lines. Needs a temporary file.
    Parquet,
}

/// A compression of a whole file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// RFC 1952, one member or several.
    Gzip,
    /// RFC 8878, one frame or several.
    Zstd,
}

/// A character set other than UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Charset {
    /// UTF-16, least significant byte first.
    #[serde(rename = "utf-16le")]
    Utf16Le,
    /// UTF-16, most significant byte first.
    #[serde(rename = "utf-16be")]
    Utf16Be,
    /// Windows-1252, which also stands for Latin-1, as in the WHATWG encoding standard.
    #[serde(rename = "windows-1252")]
    Windows1252,
}

/// How much text may come out of a packed upload. The decoders' other limits are in `rowmill-formats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackedLimits {
    /// Bytes of text, or of intermediate data that is decompressed to get it.
    pub expanded_max_bytes: u64,
    /// Bytes of text from each byte of the upload. Text compresses to a tenth or a fiftieth, a bomb to a thousandth and
    /// less.
    pub ratio_max: u64,
    /// Cells of a workbook's sheet, empty cells with formatting included.
    pub sheet_cells_max: u64,
}

impl PackedLimits {
    /// The defaults: 20 GiB, 250 and 20 million. They keep the work of a decoder within minutes.
    pub const DEFAULT: Self =
        Self { expanded_max_bytes: 20 * 1024 * 1024 * 1024, ratio_max: 250, sheet_cells_max: 20_000_000 };
}
