//! Packing: how the bytes of a stored file become the UTF-8 text that is cut into items.

use serde::{Deserialize, Serialize};

/// How the stored bytes become text; a file of plain UTF-8 text has none and is read by ranges.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Packing {
    /// Text that is compressed, or in another charset than UTF-8, or both; decoded as a stream.
    Text {
        /// How it is compressed, if it is.
        compression: Option<Compression>,
        /// Its charset, where that is not UTF-8.
        charset: Option<Charset>,
    },
    /// An Excel workbook, one sheet of which becomes CSV.
    Xlsx {
        /// The sheet's name; the first visible one without.
        sheet: Option<String>,
    },
    /// A Parquet file, whose rows become JSON lines.
    Parquet,
}

/// How text is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Compression {
    /// gzip, of one member or many.
    Gzip,
    /// Zstandard, of one frame or many.
    Zstd,
}

/// A charset other than UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Charset {
    /// UTF-16, little-endian.
    #[serde(rename = "utf-16le")]
    Utf16Le,
    /// UTF-16, big-endian.
    #[serde(rename = "utf-16be")]
    Utf16Be,
    /// Windows-1252, which Latin-1 is read as too, as browsers do.
    #[serde(rename = "windows-1252")]
    Windows1252,
}
