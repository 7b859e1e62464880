//! The checks that compare the store with the records of the oracle.

use std::future::Future;

use futures::FutureExt;
use rowmill_api::job::JobView;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, StopCode};
use rowmill_core::model::tally::{Counts, Tally, Totals};

use super::oracle::{JobRecord, Shown, TallyRecord};

/// The result of a check: the violation, if there is one.
pub type Checked = Result<(), String>;

/// The answer of an in-memory port, which never waits.
///
/// # Panics
/// If it waits.
pub fn now<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().expect("in-memory ports never wait")
}

/// `Ok` if this holds, or `what` is wrong.
pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

/// Checks that a tally has the counts of its commits.
pub fn check_tally(tally: &Tally, record: &TallyRecord) -> Checked {
    let (items, expected) = (record.items(), record.chunks.len());
    ensure((tally.items, tally.expected as usize) == (items, expected), || {
        format!("{} items in {} chunks, but {items} in {expected} were split", tally.items, tally.expected)
    })?;
    let (counts, done) = (record.counts(), record.done());
    ensure((tally.counts, tally.done as usize) == (counts, done), || {
        format!("{} done and {:?}, but its commits have {done} and {counts:?}", tally.done, tally.counts)
    })?;
    ensure(tally.counts.sum() <= tally.items, || format!("more items counted than it has: {:?}", tally.counts))?;
    let marks = tally.marks.iter().flatten().count();
    ensure(marks == record.committed.iter().flatten().count(), || {
        format!("{marks} marks, which are not one for each commit")
    })
}

/// Checks that the totals are the sums of the closed tallies.
pub fn check_totals(totals: &Totals, record: &JobRecord) -> Checked {
    let (mut items, mut counts) = (0, Counts::default());
    for number in &totals.closed {
        let tally = record.tallies.get(&(totals.attempt, *number)).ok_or("totals of a tally without a chunk index")?;
        ensure(tally.is_closed(), || format!("tally {number} is in the totals, but not closed"))?;
        (items, counts) = (items + tally.items(), counts + tally.counts());
    }
    ensure((totals.items, totals.counts) == (items, counts), || {
        format!(
            "totals of {} items {:?}, but its closed tallies have {items} items {counts:?}",
            totals.items, totals.counts
        )
    })
}

/// Checks that the shown job agrees with its commits, and that its progress never goes back.
pub fn check_view(job: &Job, view: &JobView, record: &mut JobRecord) -> Checked {
    let counts = Counts { succeeded: view.items_succeeded, failed: view.items_failed, skipped: view.items_skipped };
    if job.status() != Status::Waiting {
        ensure(counts == record.counts, || format!("shown as {counts:?}, but its commits have {:?}", record.counts))?;
    }
    ensure(view.item_progress == counts.sum(), || format!("progress {}, but counts {counts:?}", view.item_progress))?;
    ensure(view.item_progress <= view.item_count, || {
        format!("progress {} of {} items", view.item_progress, view.item_count)
    })?;
    ensure(view.percent < 100 || job.status() == Status::Completed, || "100 percent before the end".into())?;
    let (in_flight, width) = (view.chunks_in_flight, job.max_concurrency.map_or(u64::MAX, u64::from));
    ensure(in_flight <= width, || format!("{in_flight} chunks are in flight, more than the window of {width}"))?;
    ensure(in_flight == 0 || !job.is_ended(), || format!("{in_flight} chunks are in flight after the end"))?;
    if job.status() == Status::Running && job.redrive.is_none() {
        let open = view.item_count - view.item_progress;
        ensure((in_flight == 0) == (open == 0), || format!("{in_flight} chunks in flight, but {open} items are open"))?;
    }
    let shown = Shown {
        attempt: job.attempt,
        progress: view.item_progress,
        percent: view.percent,
        items: view.item_count,
        version: view.version,
        epoch: job.epoch,
    };
    let before = std::mem::replace(&mut record.shown, shown);
    ensure(shown.version >= before.version, || format!("shown as {shown:?} after {before:?}"))?;
    let further = shown.attempt > before.attempt
        || shown.progress > before.progress
        || shown.items > before.items
        || shown.epoch > before.epoch;
    ensure(shown.version > before.version || !further, || format!("no later version: {shown:?} after {before:?}"))?;
    match shown.attempt == before.attempt {
        true => ensure(shown.progress >= before.progress && shown.percent >= before.percent, || {
            format!("shown as {shown:?} after {before:?}")
        })?,
        false => ensure(shown.progress == before.progress, || format!("shown as {shown:?} after {before:?}"))?,
    }
    ensure(job.attempt == 1 || shown.progress == before.progress, || {
        "the sum of the counts changed in a redrive".into()
    })?;
    let ended = if job.is_ended() { job.attempt } else { job.attempt - 1 };
    ensure(job.completions == ended, || format!("{} completions in attempt {}", job.completions, job.attempt))?;
    let code = job.stopped_by().map(|stop| stop.code);
    ensure(code != Some(StopCode::AuditFailed), || "its audit failed".into())?;
    // An ended job is due again only if it expires by itself.
    let is_due = !job.is_ended() || job.keep_seconds.is_some();
    ensure(job.wake_at.is_some() == is_due, || format!("status and wake time disagree: {:?}", job.wake_at))
}

/// Checks the percent of a job with the items of its unfinished chunks. It never goes back either, unless a stop skips them.
pub fn check_slow_view(job: &Job, slow: &JobView, record: &mut JobRecord) -> Checked {
    let before = std::mem::replace(&mut record.slow, (job.attempt, slow.percent));
    let done = slow.item_progress + slow.items_at_work.unwrap_or(0);
    ensure(done <= slow.item_count || job.redrive.is_some(), || {
        format!("{done} of {} items are done", slow.item_count)
    })?;
    let falls = job.attempt == before.0 && slow.percent < before.1 && !job.is_stopped();
    ensure(!falls, || format!("{} percent with items at work, after {}", slow.percent, before.1))
}
