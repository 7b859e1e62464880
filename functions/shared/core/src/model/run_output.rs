//! Run outputs: the objects in which a run leaves what its chunk has beside counts, the items that failed and the outputs of
//! the others.
//!
//! A run output is JSON lines: one [`FailedItem`] each in row order, one [`ItemOutput`] each in row order, and at its end,
//! where the job was stopped meanwhile, the row from which on nothing was processed. It is always that of the whole
//! chunk so far: a run that goes on where another one handed over begins with that one's. Its key holds the run's id,
//! and only the run output of the run that won the chunk's commit is ever read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
pub use rowmill_api::item::FailedItem;
use serde::{Deserialize, Serialize};

/// Bytes that are no text, as [`FailedItem::raw_base64`] holds them.
pub fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// What an item gave for the job's output file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ItemOutput {
    /// Its 1-based number in the file, header not counted.
    pub row: u64,
    /// Its piece of the file, without a line end.
    pub output: String,
}

/// What a run leaves of its chunk beside the counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunOutput {
    /// The items that failed, in row order.
    pub failed: Vec<FailedItem>,
    /// What the others gave for the output file, in row order.
    pub outputs: Vec<ItemOutput>,
    /// The row of the first item that was skipped, where the job was stopped meanwhile: it and all behind it were.
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
    /// Whether there is nothing to leave.
    pub const fn is_empty(&self) -> bool {
        self.failed.is_empty() && self.outputs.is_empty() && self.skipped_from.is_none()
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
            offset: row * 10,
            length: 9,
            code: "ragged_row".into(),
            message: "3 cells where the header has 2".into(),
            column: None,
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
