//! The format of a file and its delimiter.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Format {
    /// CSV (RFC 4180): one record of cells per line.
    Csv,
    /// JSON Lines: one JSON object per line.
    Jsonl,
}

/// The facts by which the records of a file are found and read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dialect {
    pub format: Format,
    /// The ASCII character between two cells, serialized as a string of one character. JSON Lines has no delimiter; the
    /// field is a comma then.
    #[serde(with = "delimiter_as_text")]
    pub delimiter: u8,
}

mod delimiter_as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(delimiter: &u8, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_char(char::from(*delimiter))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
        let delimiter = char::deserialize(deserializer)?;
        u8::try_from(delimiter)
            .ok()
            .filter(u8::is_ascii)
            .ok_or_else(|| D::Error::custom("a delimiter is one ASCII character"))
    }
}
