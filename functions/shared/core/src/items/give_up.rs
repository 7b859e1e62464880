//! Failing the items of a chunk that is given up.

use crate::items::input::InputItem;
use crate::model::dead_letter::DEAD_LETTER;
use crate::model::messages::ChunkMessage;
use crate::model::run_output::{FailedItem, RunOutput};
use crate::model::tally::Counts;

/// The message of an item that is given up.
const GIVEN_UP: &str = "every try to process the item's chunk failed; see the logs of process-items for the cause";

/// Counts the remaining items of a chunk as failed, because the chunk is given up. A malformed item keeps its own
/// failure.
pub fn fail_rest(rest: &[InputItem], counts: &mut Counts, run_output: &mut RunOutput) {
    counts.failed += rest.len() as u64;
    let failed = rest.iter().map(|item| match &item.record {
        Ok(_) => item.failed(DEAD_LETTER, GIVEN_UP, None),
        Err(failed) => failed.clone(),
    });
    run_output.failed.extend(failed);
}

/// The same for a chunk whose items cannot be read: only their rows are known. The rows of a redrive are not
/// contiguous, so only their number is known.
pub fn fail_unread(message: &ChunkMessage, done: u32, counts: &mut Counts, run_output: &mut RunOutput) {
    let rest = u64::from(done)..u64::from(message.chunk.items);
    counts.failed += rest.end.saturating_sub(rest.start);
    if message.address.attempt > 1 {
        return;
    }
    run_output.failed.extend(rest.map(|place| FailedItem {
        row: message.chunk.first_row + place,
        offset: message.chunk.offset,
        length: 0,
        code: DEAD_LETTER.into(),
        message: GIVEN_UP.into(),
        column: None,
        raw: None,
        raw_base64: None,
    }));
}
