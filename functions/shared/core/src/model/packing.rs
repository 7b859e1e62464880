//! The packing of an upload that is not plain UTF-8 text.

use encoding_rs::Encoding;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::files::ZipMember;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Packing {
    /// Text that is compressed, in another character set, a JSON array, or several of these. Decoded as a stream.
    Text(TextPacking),
    /// An Excel workbook, of which one sheet becomes CSV. Needs a temporary file.
    Xlsx {
        /// The sheet's name; the first one by default.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        sheet: Option<String>,
        /// Number of rows before the header. They are not padded: the header sets the number of columns.
        #[serde(rename = "titleRows", skip_serializing_if = "is_zero", default)]
        title_rows: u32,
    },
    /// A Parquet file, whose rows become JSON lines. Needs a temporary file.
    Parquet,
    /// A file in a zip archive.
    Member { member: ZipMember, text: TextPacking },
}

const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Packing {
    /// How its text is packed, if it is text.
    pub const fn text(&self) -> Option<&TextPacking> {
        match self {
            Self::Text(text) | Self::Member { text, .. } => Some(text),
            Self::Xlsx { .. } | Self::Parquet => None,
        }
    }

    /// True if its bytes are to be UTF-8.
    pub fn is_utf8(&self) -> bool {
        self.text().is_some_and(|text| text.charset.is_none())
    }
}

/// How text is packed. The default is plain UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextPacking {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compression: Option<Compression>,
    /// The character set, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub charset: Option<Charset>,
    /// True if the text is one JSON array. Each of its elements becomes a JSON line.
    #[serde(skip_serializing_if = "is_false", default)]
    pub json_array: bool,
}

impl TextPacking {
    /// This packing; `None` for plain UTF-8 text.
    pub fn packing(self) -> Option<Packing> {
        (self != Self::default()).then_some(Packing::Text(self))
    }
}

const fn is_false(flag: &bool) -> bool {
    !*flag
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

/// A character set other than UTF-8: any of the [WHATWG encoding standard](https://encoding.spec.whatwg.org). It is
/// stored as its name in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Charset(&'static Encoding);

impl Charset {
    /// UTF-16, least significant byte first.
    pub const UTF_16LE: Self = Self(encoding_rs::UTF_16LE);
    /// UTF-16, most significant byte first.
    pub const UTF_16BE: Self = Self(encoding_rs::UTF_16BE);
    /// Windows-1252, which also stands for Latin-1, as in the WHATWG encoding standard.
    pub const WINDOWS_1252: Self = Self(encoding_rs::WINDOWS_1252);

    /// The charset of this encoding; `None` for UTF-8.
    pub fn of(encoding: &'static Encoding) -> Option<Self> {
        (encoding != encoding_rs::UTF_8).then_some(Self(encoding))
    }

    pub const fn encoding(self) -> &'static Encoding {
        self.0
    }

    /// The name in the encoding standard, such as `Shift_JIS`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl Serialize for Charset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name().to_ascii_lowercase())
    }
}

impl<'de> Deserialize<'de> for Charset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let encoding = Encoding::for_label_no_replacement(name.as_bytes());
        encoding.and_then(Self::of).ok_or_else(|| D::Error::custom("an unknown charset"))
    }
}

/// Limits of the text of a packed upload. The decoders' other limits are in `rowmill-formats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackedLimits {
    /// Bytes of text, or of intermediate data that is decompressed to get it.
    pub expanded_max_bytes: u64,
    /// Bytes of text from each byte of the upload. Text compresses to a tenth or a fiftieth, a bomb to a thousandth.
    pub ratio_max: u64,
    /// Cells of a workbook's sheet, empty cells with formatting included.
    pub sheet_cells_max: u64,
}

impl PackedLimits {
    /// The defaults: 20 GiB, 250 and 20 million. They keep the work of a decoder within minutes.
    pub const DEFAULT: Self =
        Self { expanded_max_bytes: 20 * 1024 * 1024 * 1024, ratio_max: 250, sheet_cells_max: 20_000_000 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packing_reads_back_as_it_was_stored_and_a_charset_is_its_name_in_lower_case() {
        let text = |charset| Packing::Text(TextPacking { charset: Some(charset), ..TextPacking::default() });
        let array = TextPacking { compression: Some(Compression::Gzip), json_array: true, charset: None };
        let shift_jis = Charset::of(encoding_rs::SHIFT_JIS).unwrap();
        for (packing, stored) in [
            (text(Charset::UTF_16LE), r#"{"kind":"text","charset":"utf-16le"}"#),
            (text(Charset::WINDOWS_1252), r#"{"kind":"text","charset":"windows-1252"}"#),
            (text(shift_jis), r#"{"kind":"text","charset":"shift_jis"}"#),
            (Packing::Text(array), r#"{"kind":"text","compression":"gzip","jsonArray":true}"#),
            (Packing::Xlsx { sheet: None, title_rows: 0 }, r#"{"kind":"xlsx"}"#),
            (Packing::Xlsx { sheet: None, title_rows: 3 }, r#"{"kind":"xlsx","titleRows":3}"#),
        ] {
            assert_eq!(serde_json::to_string(&packing).unwrap(), stored);
            assert_eq!(serde_json::from_str::<Packing>(stored).unwrap(), packing);
        }
        assert!(serde_json::from_str::<Packing>(r#"{"kind":"text","charset":"hz-gb-2312"}"#).is_err());
    }
}
