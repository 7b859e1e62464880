//! The progress of a run at its chunk.

use crate::items::input::InputItem;
use crate::model::checkpoint::Checkpoint;
use crate::model::run_output::{FailedItem, ItemOutput, RunOutput};
use crate::model::tally::Counts;
use crate::ports::OUTPUT_TOO_LARGE;
use crate::ports::processor::{ItemError, ItemOutcome};

/// The outcomes of a chunk's items, in their order. The items in front are done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    pub done: u32,
    /// The done items by outcome.
    pub counts: Counts,
    /// The failed items in row order, the outputs, and the row from which items were skipped.
    pub run_output: RunOutput,
}

impl Progress {
    /// The progress in a checkpoint and the run output that it names.
    pub const fn of(checkpoint: &Checkpoint, run_output: RunOutput) -> Self {
        Self { done: checkpoint.done, counts: checkpoint.counts, run_output }
    }

    /// Number of items listed in the run output.
    pub const fn lines(&self) -> usize {
        self.run_output.failed.len() + self.run_output.outputs.len()
    }

    /// Adds the outcome of the next item. An output beyond the limit of the chunk makes its item fail.
    pub fn add(&mut self, item: &InputItem, result: Result<ItemOutcome, ItemError>, output_max_bytes: u64) {
        self.done += 1;
        let failed = match (&item.record, result) {
            (Err(failed), _) => failed.clone(),
            (Ok(_), Err(error)) => {
                let ItemError { code, message, column, rule, .. } = error;
                FailedItem { column, rule, ..item.failed(code, message) }
            }
            (Ok(_), Ok(ItemOutcome::Output(output))) => {
                let bytes = self.output_bytes() + output.len() as u64;
                if bytes <= output_max_bytes {
                    self.counts.succeeded += 1;
                    self.run_output.outputs.push(ItemOutput { row: item.row, output });
                    return;
                }
                let message = format!(
                    "the outputs of its chunk take {bytes} bytes with this one, more than the {output_max_bytes} they may"
                );
                item.failed(OUTPUT_TOO_LARGE, message)
            }
            (Ok(_), Ok(_)) => {
                self.counts.succeeded += 1;
                return;
            }
        };
        self.counts.failed += 1;
        self.run_output.failed.push(failed);
    }

    fn output_bytes(&self) -> u64 {
        self.run_output.outputs.iter().map(|output| output.output.len() as u64).sum()
    }
}
