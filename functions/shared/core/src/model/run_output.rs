//! Run outputs: the objects in which a run stores the results of a chunk besides its counts.
//!
//! A run output is JSON Lines: the failed items in row order (one [`FailedItem`] a line), the outputs in row order (one
//! [`ItemOutput`] a line) and, if the job was stopped during the run, the first row that was skipped. It always covers
//! the whole chunk so far: a run that continues another one starts with the run output of that one. The key contains
//! the id of the run. Only the run output of the run that won the chunk's commit is read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::files::FileRow;
use crate::model::tally::{Counts, MarkKind};

/// Encodes bytes that are not text, for [`FailedItem::raw_base64`].
pub fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// An item that failed, as it is stored and listed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedItem {
    /// Its 1-based row number in the file; the header is not counted.
    #[schema(minimum = 1)]
    pub row: u64,
    /// Its place in its file, in a job over many files. Then `row` is its number in the job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<FileRow>,
    /// The byte of the file at which it begins.
    pub offset: u64,
    /// Its length in bytes, without the record's end.
    pub length: u64,
    /// What is wrong with it, for a program, such as `ragged_row`.
    pub code: String,
    /// What is wrong with it, for a person.
    pub message: String,
    /// The column that is wrong, if it is one column.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<String>,
    /// The keyword of the JSON Schema that it breaks, such as `pattern`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
    /// Its text; left out if it is too long or not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<String>,
    /// Its exact bytes in base64, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw_base64: Option<String>,
}

/// The piece of the job's output file that an item gives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ItemOutput {
    /// Its 1-based number in the file, header not counted.
    pub row: u64,
    /// Its piece of the file, without a line end.
    pub output: String,
}

/// The results of a chunk besides its counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunOutput {
    /// The items that failed, in row order.
    pub failed: Vec<FailedItem>,
    /// The pieces of the output file from the other items, in row order.
    pub outputs: Vec<ItemOutput>,
    /// The row of the first skipped item, if the job was stopped during the run. All items from there on were skipped.
    pub skipped_from: Option<u64>,
}

/// A line of a run output.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Failed(FailedItem),
    Output(ItemOutput),
    #[serde(rename_all = "camelCase")]
    Skipped {
        skipped_from: u64,
    },
}

impl RunOutput {
    /// True if there is nothing to store.
    pub const fn is_empty(&self) -> bool {
        self.failed.is_empty() && self.outputs.is_empty() && self.skipped_from.is_none()
    }

    /// The kind of the mark of a chunk with these outcomes.
    pub const fn mark_kind(&self, counts: &Counts) -> MarkKind {
        if self.skipped_from.is_some() {
            MarkKind::Stopped
        } else if counts.failed > 0 {
            MarkKind::HasFailed
        } else if !self.outputs.is_empty() {
            MarkKind::HasOutputs
        } else if counts.skipped > 0 {
            MarkKind::Skipped
        } else {
            MarkKind::Clean
        }
    }

    /// The bytes of the object.
    ///
    /// # Errors
    /// None in practice: every field of an item can be written as JSON.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = Vec::new();
        for item in &self.failed {
            serde_json::to_writer(&mut bytes, item)?;
            bytes.push(b'\n');
        }
        for output in &self.outputs {
            serde_json::to_writer(&mut bytes, output)?;
            bytes.push(b'\n');
        }
        if let Some(skipped_from) = self.skipped_from {
            serde_json::to_writer(&mut bytes, &Line::Skipped { skipped_from })?;
            bytes.push(b'\n');
        }
        Ok(bytes)
    }

    /// Reads the object's bytes.
    ///
    /// # Errors
    /// Where a line is none of a run output: the object was not written by Rowmill.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let mut run_output = Self::default();
        for line in serde_json::Deserializer::from_slice(bytes).into_iter() {
            match line? {
                Line::Failed(item) => run_output.failed.push(item),
                Line::Output(output) => run_output.outputs.push(output),
                Line::Skipped { skipped_from } => run_output.skipped_from = Some(skipped_from),
            }
        }
        Ok(run_output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_output_reads_back_as_it_was_written() {
        let item = |row, raw: Option<&str>| FailedItem {
            row,
            file: None,
            offset: row * 10,
            length: 9,
            code: "ragged_row".into(),
            message: "3 cells where the header has 2".into(),
            column: None,
            rule: None,
            raw: raw.map(Into::into),
            raw_base64: None,
        };
        let failed = vec![item(3, Some("a,\"b\nc\",d")), item(7, None)];
        let outputs = vec![ItemOutput { row: 4, output: "a,\"b\nc\"".into() }];
        for skipped_from in [None, Some(9)] {
            let run_output = RunOutput { failed: failed.clone(), outputs: outputs.clone(), skipped_from };
            assert_eq!(RunOutput::from_bytes(&run_output.to_bytes().unwrap()).unwrap(), run_output);
        }
        assert!(RunOutput::from_bytes(b"").unwrap().is_empty());
    }
}
