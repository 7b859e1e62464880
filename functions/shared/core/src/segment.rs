//! Segments: the objects in which a run leaves the items that failed in its chunk.
//!
//! A segment is JSON lines, one [`FailedItem`] each, in row order. Its key holds the run's id, and only the segment of
//! the run that won the chunk's commit is ever read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::ids::{JobGuid, RunId};
use crate::tally::ChunkAddress;

/// An item that failed, as it is stored and listed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedItem {
    /// Its 1-based number in the file, header not counted.
    pub row: u64,
    /// The byte of the file it begins at.
    pub offset: u64,
    /// Its length in bytes without the record's end.
    pub length: u64,
    /// What is wrong with it, for a program.
    pub code: String,
    /// What is wrong with it, for a person.
    pub message: String,
    /// The column it is wrong in, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<String>,
    /// Its text, or none where it is too long or not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<String>,
    /// Its exact bytes in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw_base64: Option<String>,
}

/// The key of the segment a run leaves for a chunk.
pub fn failed_items_key(job: JobGuid, chunk: ChunkAddress, run: RunId) -> String {
    let ChunkAddress { attempt, tally, index } = chunk;
    format!("results/{job}/{attempt}/failed/{tally:08}/{index:02}/{run}.jsonl")
}

/// Bytes that are no text, as [`FailedItem::raw_base64`] holds them.
pub fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes of a segment.
///
/// # Errors
/// None in practice: every field of an item can be written as JSON.
pub fn write_segment(items: &[FailedItem]) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    for item in items {
        serde_json::to_writer(&mut bytes, item)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Reads a segment's items, in row order.
///
/// # Errors
/// Where a line is not a failed item: the object was not written by Rowmill.
pub fn read_segment(bytes: &[u8]) -> Result<Vec<FailedItem>, serde_json::Error> {
    serde_json::Deserializer::from_slice(bytes).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_reads_back_as_it_was_written() {
        let item = |row, raw: Option<&str>| FailedItem {
            row,
            offset: row * 10,
            length: 9,
            code: "ragged_row".into(),
            message: "3 cells where the header has 2".into(),
            column: None,
            raw: raw.map(Into::into),
            raw_base64: None,
        };
        let items = vec![item(3, Some("a,\"b\nc\",d")), item(7, None)];
        assert_eq!(read_segment(&write_segment(&items).unwrap()).unwrap(), items);
        assert!(read_segment(b"").unwrap().is_empty());
    }
}
