//! How the items of a file are written: its format and its delimiter.

use serde::{Deserialize, Serialize};

/// How a file's items are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Format {
    /// A record of cells a line, by RFC 4180.
    Csv,
    /// A JSON object a line.
    Jsonl,
}

/// All that has to be known to find and read the records of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dialect {
    /// How the items are written.
    pub format: Format,
    /// The ASCII character between two cells, serialized as a string of that character. JSON Lines files have none and
    /// carry a comma here.
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
