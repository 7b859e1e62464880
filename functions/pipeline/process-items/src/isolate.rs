//! A run over an isolated chunk. Its checkpoint notes the items that run before they run, so that an item that kills
//! its process fails alone and not with its chunk.
//!
//! Fast items run a batch at a time, others one at a time. An expired note means that the run which wrote it died or
//! hung on those items. Several of them are *suspects*: they run again in smaller parts, under a fresh message with a
//! new delivery count. So do items that take longer than an invocation together. The second death of one item alone
//! makes it poison. It is passed over: it counts as failed, and a fresh message carries the rest of the chunk on. So is
//! an item that has failed alone with a transient error at three deliveries, or at two once its chunk has such an item,
//! while its target is not known to be down.

use rowmill_core::items::give_up::fail_rest;
use rowmill_core::items::input::InputItem;
use rowmill_core::items::progress::Progress;
use rowmill_core::model::checkpoint::{DEATHS_MAX, FAILURES_MAX, InFlight, Suspects};
use rowmill_core::model::dead_letter::POISON;
use rowmill_core::ports::BatchCall;
use rowmill_core::ports::processor::{CostClass, ItemError, ItemOutcome};

use crate::end::{Conclusion, RunError};
use crate::open_chunk::OpenChunk;
use crate::run::{ChunkRun, InTime, RunLimits, batch_len};

/// Runs the items of an isolated chunk that are not done.
pub(crate) async fn run(chunk: &mut OpenChunk<'_>, run: &ChunkRun<'_>) -> Result<Conclusion, RunError> {
    while let Some(item) = chunk.rest().first() {
        if item.record.is_err() {
            let item = item.clone();
            chunk.add(&item, Ok(ItemOutcome::Succeeded), run.limits.output_max_bytes);
            continue;
        }
        if let Some(end) = run.ended().await? {
            return Ok(end);
        }
        let mut batch = next(chunk, run);
        let items = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        // Until the invocation has certainly ended: the margin follows the time limit, and the clock of another one may
        // be ahead.
        let until = run.time_limit + run.limits.margin * 2;
        let deaths = chunk.suspects().map_or(0, |suspects| suspects.deaths);
        if let Some(left) = chunk.note(Some(InFlight::of_run(until, deaths, items))).await? {
            return Ok(left);
        }
        if run.clock.now() >= run.time_limit {
            // The store took all of the time.
            return Ok(Conclusion::HandOver);
        }
        // Items that began in time may end within the margin. That is no hang and costs no delivery.
        let patience = run.time_limit + run.limits.margin / 2;
        let narrow = Suspects::after(chunk.progress.done, items);
        let beyond = chunk.suspects().and_then(|suspects| suspects.beyond);
        let call = if batch.len() == 1 { BatchCall::Alone } else { BatchCall::Together };
        match run.in_time(patience, &mut batch, call).await {
            InTime::Stopped(end) => return Ok(end),
            InTime::Done(Ok(results)) => {
                for (item, result) in batch.iter().zip(results) {
                    chunk.add(item, result, run.limits.output_max_bytes);
                }
            }
            // They had only the time that others left: the next run gives them all of its time.
            InTime::Late if chunk.has_progress() => return Ok(Conclusion::HandOver),
            // Those beyond them may be as slow.
            InTime::Late if items > 1 => {
                chunk.suspects = Some(Suspects { beyond: Some(beyond.unwrap_or(narrow.part)), ..narrow });
                return Ok(Conclusion::HandOver);
            }
            // Keep the note: an item that hangs is as bad as one that kills the process.
            InTime::Late => return Err(RunError::TryAgain("an isolated item took too long".into())),
            // One of them may be the cause, and must not take the others with it.
            InTime::Done(Err(RunError::TryAgain(_) | RunError::StillFailing { .. })) if items > 1 => {
                chunk.suspects = Some(Suspects { part: 1, beyond, ..narrow });
            }
            InTime::Done(Err(RunError::TryAgain(_) | RunError::StillFailing { .. })) if chunk.has_progress() => {
                return Ok(Conclusion::HandOver);
            }
            InTime::Done(Err(error @ RunError::TryAgain(_))) => return chunk.note(None).await?.ok_or(error),
            InTime::Done(Err(error)) => return Err(error),
        }
    }
    Ok(Conclusion::Commit)
}

fn next(chunk: &OpenChunk<'_>, run: &ChunkRun<'_>) -> Vec<InputItem> {
    let rest = chunk.rest();
    let together = chunk.suspects().and_then(|suspects| suspects.together(chunk.progress.done));
    let count = match (run.prepared.processor.cost(), together) {
        (CostClass::Fast, Some(together)) => together as usize,
        (CostClass::Fast, None) => batch_len(rest, run.batch_items()),
        (CostClass::StoreBound | CostClass::Remote, _) => 1,
    };
    rest[..count.clamp(1, rest.len())].to_vec()
}

/// The next item has failed alone with a transient error, and its target is not known to be down. The message returns
/// to its queue, unless that was the case at several deliveries.
pub(crate) async fn failed_alone(
    chunk: &mut OpenChunk<'_>,
    open: usize,
    error: ItemError,
    limits: &RunLimits,
) -> Result<Conclusion, RunError> {
    let known = chunk.suspects().unwrap_or(Suspects::after(chunk.progress.done, 1));
    let failures = known.failures + 1;
    // A delivery costs the chunk a visibility timeout, and its rest has to come before the deadline of the job.
    let is_first = chunk.checkpoint.passed_over == 0;
    if failures >= FAILURES_MAX - u32::from(!is_first) {
        return Ok(pass_over(chunk, error, limits));
    }
    chunk.suspects = Some(Suspects { failures, ..known });
    chunk.note(None).await?.ok_or(RunError::StillFailing { open, error })
}

/// Fails the next item as poison.
pub(crate) fn pass_over_poison(chunk: &mut OpenChunk<'_>, limits: &RunLimits) -> Conclusion {
    let deaths = chunk.suspects().map_or(DEATHS_MAX, |suspects| suspects.deaths);
    let message = format!("processing the item ended its process {deaths} times");
    pass_over(chunk, ItemError::permanent(POISON, message), limits)
}

/// Fails the next item, and leaves the rest to a fresh message. Above the limit of such items the rest fails too.
fn pass_over(chunk: &mut OpenChunk<'_>, error: ItemError, limits: &RunLimits) -> Conclusion {
    if let Some(item) = chunk.rest().first().cloned() {
        chunk.add(&item, Err(error), limits.output_max_bytes);
        chunk.checkpoint.passed_over += 1;
    }
    if chunk.checkpoint.passed_over <= limits.passed_over_max {
        return Conclusion::HandOver;
    }
    let Progress { done, counts, run_output } = &mut chunk.progress;
    let rest = chunk.items.get(*done as usize..).unwrap_or_default();
    fail_rest(rest, counts, run_output);
    *done += u32::try_from(rest.len()).unwrap_or(u32::MAX);
    Conclusion::Commit
}
