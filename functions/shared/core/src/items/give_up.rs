//! Ending a chunk without processing the rest of it: as failed if it is given up, as skipped if its job is stopped.

use crate::items::input::{InputItem, read_redrive_items};
use crate::model::dead_letter::DEAD_LETTER;
use crate::model::keys;
use crate::model::messages::ChunkMessage;
use crate::model::run_output::{FailedItem, RunOutput};
use crate::model::tally::Counts;
use crate::ports::{Objects, PortError};

const GIVEN_UP: &str = "every try to process the item's chunk failed; see the logs of process-items for the cause";

/// Counts the remaining items of a chunk that is given up as failed. A malformed item keeps its own failure.
pub fn fail_rest(rest: &[InputItem], counts: &mut Counts, run_output: &mut RunOutput) {
    counts.failed += rest.len() as u64;
    let failed = rest.iter().map(|item| match &item.record {
        Ok(_) => item.failed(DEAD_LETTER, GIVEN_UP),
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
        file: message.place(message.chunk.first_row + place),
        offset: message.range().start,
        length: 0,
        code: DEAD_LETTER.into(),
        message: GIVEN_UP.into(),
        column: None,
        rule: None,
        raw: None,
        raw_base64: None,
    }));
}

/// Counts the items of a chunk behind the `done` ones as skipped, because the job is stopped. The `done` ones keep
/// their outcomes. A skipped item of a redrive keeps its earlier failure. Reads no rows of the upload.
///
/// # Errors
/// As [`Objects::read`], in a redrive.
pub async fn skip_rest(
    objects: &dyn Objects,
    message: &ChunkMessage,
    done: u32,
    counts: &mut Counts,
    run_output: &mut RunOutput,
) -> Result<(), PortError> {
    let rest = message.chunk.items.saturating_sub(done);
    counts.skipped += u64::from(rest);
    if done == 0 || rest == 0 {
        // The mark of a chunk that is skipped as a whole says so without a run output.
        return Ok(());
    }
    if message.address.attempt == 1 {
        run_output.skipped_from = Some(message.chunk.first_row + u64::from(done));
        return Ok(());
    }
    let bytes = objects.read(&keys::redrive_items(message.job_guid, message.address)).await?;
    let before = read_redrive_items(&bytes)?.into_iter().skip(done as usize).map(|item| item.failed);
    let listed = run_output.failed.len();
    run_output.failed.extend(before);
    run_output.skipped_from = run_output.failed.get(listed).map(|item| item.row);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::in_memory::InMemoryObjects;
    use crate::items::input::RedriveItem;

    fn failed(row: u64) -> FailedItem {
        let mut run_output = RunOutput::default();
        let mut message = fixtures::chunk_message(0, 0);
        message.chunk.first_row = row;
        fail_unread(&message, 0, &mut Counts::default(), &mut run_output);
        run_output.failed.remove(0)
    }

    #[tokio::test]
    async fn items_that_are_done_are_not_skipped_and_skipped_items_of_a_redrive_keep_their_failure() {
        let objects = InMemoryObjects::default();
        let mut message = fixtures::chunk_message(0, 0);
        (message.chunk.first_row, message.chunk.items) = (11, 4);
        let done = Counts { succeeded: 1, failed: 1, skipped: 0 };
        let skip = async |message: &ChunkMessage, done: u32, mut counts: Counts| {
            let mut run_output = RunOutput { failed: vec![failed(12)], ..RunOutput::default() };
            skip_rest(&objects, message, done, &mut counts, &mut run_output).await.unwrap();
            let rows: Vec<u64> = run_output.failed.iter().map(|item| item.row).collect();
            (counts.skipped, run_output.skipped_from, rows)
        };
        assert_eq!(skip(&message, 2, done).await, (2, Some(13), vec![12]));
        assert_eq!(skip(&message, 0, Counts::default()).await.0, 4);
        assert_eq!(skip(&message, 4, done).await, (0, None, vec![12]), "nothing is left");

        message.address.attempt = 2;
        let lines = [11, 12, 15, 19].map(|row| {
            let item = RedriveItem { failed: failed(row), corrected: None, left_out: false };
            serde_json::to_string(&item).unwrap()
        });
        let key = keys::redrive_items(message.job_guid, message.address);
        objects.put(&key, "application/x-ndjson", lines.join("\n").into(), None).await.unwrap();
        assert_eq!(skip(&message, 2, done).await, (2, Some(15), vec![12, 15, 19]));
    }
}
