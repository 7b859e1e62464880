//! The version of a job's view: a number by which a client tells a newer view from an older one.

use crate::model::job::Job;
use crate::model::states::Status;
use crate::progress::job_view::Counters;

/// The bits of the attempt, of the phase and of the progress: 53 together, so that every version is exact as a double.
const ATTEMPT_BITS: u32 = 13;
const PHASE_BITS: u32 = 2;
const PROGRESS_BITS: u32 = 38;

/// The largest version, 2^53 − 1.
pub const VERSION_MAX: u64 = (1 << (ATTEMPT_BITS + PHASE_BITS + PROGRESS_BITS)) - 1;

/// The version of the view of this job with these counters.
///
/// Attempt, phase and progress in this order of weight. A job passes through the phases of an attempt in one direction: active,
/// stopping, cancelling, ended. Within a phase the progress is a sum of numbers that only grow: items known, items
/// accounted for, and whether the split has begun and ended. So a later view never has a smaller version, and a view with
/// more progress, a later status or a later attempt has a larger one, up to 8,191 attempts and 2^38 items.
pub fn version(job: &Job, counters: Option<&Counters>) -> u64 {
    const ATTEMPT_MAX: u64 = (1 << ATTEMPT_BITS) - 1;
    let attempt = u64::from(job.attempt);
    if attempt > ATTEMPT_MAX {
        return VERSION_MAX;
    }
    let (phase, progress) = match (job.status, &job.stop) {
        (Status::Waiting, _) => (0, 0),
        (Status::Running, None) => (0, progress(job, counters)),
        (Status::Running, Some(_)) => (1, progress(job, counters)),
        (Status::Cancelling, _) => (2, progress(job, counters)),
        (Status::Completed | Status::Failed | Status::Cancelled, _) => (3, 0),
    };
    (attempt << (PHASE_BITS + PROGRESS_BITS)) | (phase << PROGRESS_BITS) | progress
}

/// The progress of a job that was taken up, at least 1.
fn progress(job: &Job, counters: Option<&Counters>) -> u64 {
    const PROGRESS_MAX: u64 = (1 << PROGRESS_BITS) - 1;
    let (items, accounted) = counters.map_or((0, 0), |counters| (counters.items(), counters.counts().sum()));
    let known = job.items_dispatched().max(items);
    let sum = known.saturating_add(accounted).saturating_add(1).saturating_add(u64::from(job.split.done));
    sum.min(PROGRESS_MAX)
}
