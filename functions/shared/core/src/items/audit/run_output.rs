//! The contents of a run output about its chunk's items, without their texts.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::chunks::Rows;
use super::{Broken, in_chunk};
use crate::model::audit::AuditCode;
use crate::model::tally::{ChunkAddress, Counts, Mark, MarkKind};

/// The rows that a run output names.
#[derive(Debug, Default)]
pub(super) struct OutputRows {
    failed: Vec<u64>,
    outputs: Vec<u64>,
    skipped_from: Option<u64>,
}

/// A line of a run output. Texts are passed over, so that memory does not grow with them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutputLine {
    #[serde(default)]
    row: Option<u64>,
    #[serde(default)]
    code: Option<IgnoredAny>,
    #[serde(default)]
    output: Option<IgnoredAny>,
    #[serde(default)]
    skipped_from: Option<u64>,
}

impl OutputRows {
    /// Reads the bytes of a run output. `None` if they are none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut rows = Self::default();
        for line in serde_json::Deserializer::from_slice(bytes).into_iter::<OutputLine>() {
            match line.ok()? {
                OutputLine { row: Some(row), code: Some(_), output: None, skipped_from: None } => rows.failed.push(row),
                OutputLine { row: Some(row), code: None, output: Some(_), skipped_from: None } => {
                    rows.outputs.push(row);
                }
                OutputLine { row: None, code: None, output: None, skipped_from: Some(row) } => {
                    rows.skipped_from = Some(row);
                }
                _ => return None,
            }
        }
        Some(rows)
    }

    /// The chunk's items by outcome, as its mark and this run output have them.
    pub(super) fn counts(&self, mark: Mark, items: u64, rows: Rows, chunk: ChunkAddress) -> Result<Counts, Broken> {
        let differs = |what: &str| {
            let ChunkAddress { attempt, tally, index } = chunk;
            let message = format!("The run output of chunk {index} of tally {tally} of attempt {attempt} {what}.");
            in_chunk(AuditCode::RunOutputDiffers, message, chunk)
        };
        for named in [&self.failed, &self.outputs] {
            if !named.is_sorted_by(|one, next| one < next) {
                return Err(differs("names a row twice, or not in order"));
            }
            if named.iter().any(|row| *row < rows.first || *row > rows.last) {
                return Err(differs("names a row of another chunk"));
            }
        }
        if self.outputs.iter().any(|row| self.failed.binary_search(row).is_ok()) {
            return Err(differs("has an output of a failed row"));
        }
        let skipped = self.skipped_in(items, rows, chunk.attempt);
        let failed = match skipped {
            // In a redrive a skipped item is listed too, with the failure that stands.
            Some(skipped) if chunk.attempt > 1 => (self.failed.len() as u64).saturating_sub(skipped),
            _ => self.failed.len() as u64,
        };
        let fits = match mark.kind {
            MarkKind::HasFailed => skipped.is_none(),
            MarkKind::HasOutputs => skipped.is_none() && failed == 0,
            MarkKind::Stopped => skipped.is_some(),
            MarkKind::Clean | MarkKind::Skipped => false,
        };
        let skipped = skipped.unwrap_or(0);
        let succeeded = items.checked_sub(failed.saturating_add(skipped));
        let succeeded = succeeded.filter(|succeeded| fits && self.outputs.len() as u64 <= *succeeded);
        let Some(succeeded) = succeeded else {
            return Err(differs("contradicts the chunk's mark or its number of items"));
        };
        Ok(Counts { succeeded, failed, skipped })
    }

    /// Number of skipped items, if the run was stopped.
    fn skipped_in(&self, items: u64, rows: Rows, attempt: u32) -> Option<u64> {
        let from = self.skipped_from?;
        Some(match attempt {
            1 => rows.last.saturating_add(1).saturating_sub(from).min(items.saturating_add(1)),
            _ => self.failed.iter().filter(|row| **row >= from).count() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::RunId;

    const ROWS: Rows = Rows { first: 11, last: 14 };

    fn counts(kind: MarkKind, attempt: u32, lines: &str) -> Option<(u64, u64, u64)> {
        let mark = Mark { kind, run: RunId::from_bytes([7; RunId::BYTES]) };
        let read = OutputRows::read(lines.as_bytes())?;
        let counts = read.counts(mark, 4, ROWS, ChunkAddress { attempt, tally: 0, index: 0 }).ok()?;
        Some((counts.succeeded, counts.failed, counts.skipped))
    }

    fn failed(row: u64) -> String {
        format!(r#"{{"row":{row},"offset":1,"length":2,"code":"c","message":"m"}}"#)
    }

    #[test]
    fn the_counts_follow_from_the_mark_and_the_rows() {
        let output = r#"{"row":12,"output":"x"}"#;
        assert_eq!(counts(MarkKind::HasFailed, 1, &failed(11)), Some((3, 1, 0)));
        assert_eq!(counts(MarkKind::HasFailed, 1, &format!("{}{output}", failed(11))), Some((3, 1, 0)));
        assert_eq!(counts(MarkKind::HasOutputs, 1, output), Some((4, 0, 0)));
        assert_eq!(counts(MarkKind::Stopped, 1, &format!(r#"{}{{"skippedFrom":13}}"#, failed(11))), Some((1, 1, 2)));
        let redriven = format!(r#"{}{}{{"skippedFrom":13}}"#, failed(11), failed(14));
        assert_eq!(counts(MarkKind::Stopped, 2, &redriven), Some((2, 1, 1)), "the skipped one is listed too");
    }

    #[test]
    fn a_run_output_that_contradicts_its_chunk_is_found() {
        let twice = format!("{}{}", failed(12), failed(12));
        for (kind, lines) in [
            (MarkKind::HasFailed, twice),
            (MarkKind::HasFailed, failed(10)),
            (MarkKind::HasFailed, failed(15)),
            (MarkKind::HasFailed, format!(r#"{}{{"row":12,"output":"x"}}"#, failed(12))),
            (MarkKind::HasFailed, format!(r#"{}{{"skippedFrom":13}}"#, failed(12))),
            (MarkKind::HasOutputs, failed(12)),
            (MarkKind::Stopped, failed(12)),
            (MarkKind::Stopped, r#"{"skippedFrom":3}"#.to_owned()),
            (MarkKind::HasFailed, r#"{"row":12}"#.to_owned()),
            (MarkKind::HasFailed, "no JSON".to_owned()),
        ] {
            assert_eq!(counts(kind, 1, &lines), None, "{kind:?} {lines}");
        }
    }
}
