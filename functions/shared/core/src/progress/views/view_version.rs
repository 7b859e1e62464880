//! The version of a job's view: a number by which a client tells a newer view from an older one.

use crate::model::job::Job;
use crate::model::job::states::Status;
use crate::progress::counters::Counters;

/// The bits of the attempt, of the phase and of the progress: 53 together, so that every version is exact as a double.
const ATTEMPT_BITS: u32 = 13;
const PHASE_BITS: u32 = 2;
const PROGRESS_BITS: u32 = 38;
const PROGRESS_MAX: u64 = (1 << PROGRESS_BITS) - 1;

/// The largest version, 2^53 − 1.
pub const VERSION_MAX: u64 = (1 << (ATTEMPT_BITS + PHASE_BITS + PROGRESS_BITS)) - 1;

/// The version of the view of this job with these counters.
///
/// Attempt, phase and progress in this order of weight. A job passes through the phases of an attempt in one direction: active,
/// stopping, cancelling, ended. Within a phase the progress is a sum of numbers that only grow: items known, items
/// accounted for, pauses and resumes, whether the split has begun and ended, and whether a chunk has begun. So a later view
/// never has a smaller version, and a view with more progress, a later status, a pause, a resume or a later attempt has a
/// larger one, up to 8,191 attempts and 2^38 items.
pub fn version(job: &Job, counters: Option<&Counters>) -> u64 {
    const ATTEMPT_MAX: u64 = (1 << ATTEMPT_BITS) - 1;
    let attempt = u64::from(job.attempt);
    if attempt > ATTEMPT_MAX {
        return VERSION_MAX;
    }
    let (phase, progress) = match (job.status, &job.stop) {
        (Status::Waiting, _) => (0, untaken(job)),
        (Status::Paused, _) if job.paused_from == Some(Status::Waiting) => (0, untaken(job)),
        (Status::Running | Status::Paused, None) => (0, progress(job, counters)),
        (Status::Running | Status::Paused, Some(_)) => (1, progress(job, counters)),
        (Status::Cancelling, _) => (2, progress(job, counters)),
        (Status::Completed | Status::Failed | Status::Cancelled, _) => (3, 0),
    };
    (attempt << (PHASE_BITS + PROGRESS_BITS)) | (phase << PROGRESS_BITS) | progress
}

/// The progress of a job that no function has taken up.
fn untaken(job: &Job) -> u64 {
    u64::from(job.pauses).min(PROGRESS_MAX)
}

/// The progress of a job that was taken up, at least 1.
fn progress(job: &Job, counters: Option<&Counters>) -> u64 {
    let (items, accounted) = counters.map_or((0, 0), |counters| (counters.items(), counters.counts().sum()));
    let known = job.items_dispatched().max(items);
    let sum = known.saturating_add(accounted).saturating_add(1).saturating_add(u64::from(job.split.done));
    let sum = sum.saturating_add(u64::from(job.pauses)).saturating_add(u64::from(job.first_chunk_at.is_some()));
    sum.min(PROGRESS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::model::job::{Stop, StopCode};
    use crate::model::tally::{Counts, Totals};
    use jiff::Timestamp;
    use proptest::prelude::*;

    fn job(attempt: u32, status: Status) -> Job {
        Job { attempt, status, ..fixtures::job() }
    }

    fn counters(items: u64, succeeded: u64) -> Counters {
        let counts = Counts { succeeded, ..Counts::default() };
        Counters { totals: Totals { items, counts, ..Totals::default() }, open: Vec::new() }
    }

    #[test]
    fn every_step_of_a_life_has_a_larger_version() {
        let stopped = |job: Job| Job {
            stop: Some(Stop::because(StopCode::DeadlineExceeded, "late", Timestamp::UNIX_EPOCH)),
            ..job
        };
        let mut split = job(1, Status::Running);
        split.split.done = true;
        let busy = counters(u64::from(u32::MAX) * 64, u64::from(u32::MAX) * 64);
        let untaken = |pauses, status| Job { pauses, paused_from: Some(Status::Waiting), ..job(1, status) };
        let pauses = |pauses, job: Job| Job { pauses, ..job };
        let life = [
            version(&job(1, Status::Waiting), None),
            version(&untaken(1, Status::Paused), Some(&counters(0, 0))),
            version(&pauses(2, job(1, Status::Waiting)), None),
            version(&pauses(2, job(1, Status::Running)), None),
            version(&pauses(3, job(1, Status::Paused)), Some(&counters(0, 0))),
            version(&pauses(4, job(1, Status::Running)), Some(&counters(0, 0))),
            version(&pauses(4, job(1, Status::Running)), Some(&counters(1, 0))),
            version(&pauses(4, job(1, Status::Running)), Some(&counters(1, 1))),
            version(&job(1, Status::Running), Some(&counters(10, 1))),
            version(&split, Some(&counters(10, 1))),
            version(&split, Some(&busy)),
            version(&stopped(job(1, Status::Running)), Some(&counters(1, 0))),
            version(&stopped(job(1, Status::Cancelling)), Some(&counters(1, 0))),
            version(&stopped(job(1, Status::Cancelled)), None),
            version(&job(2, Status::Running), Some(&counters(1, 0))),
            version(&job(2, Status::Completed), None),
            version(&job(8191, Status::Running), None),
        ];
        assert!(life.windows(2).all(|pair| pair[0] < pair[1]), "{life:?}");
        assert!(version(&job(8192, Status::Running), None) >= version(&job(8191, Status::Failed), None));
        assert_eq!(version(&job(u32::MAX, Status::Waiting), None), VERSION_MAX);
        assert_eq!(VERSION_MAX, 9_007_199_254_740_991, "as in the document");
    }

    proptest! {
        #[test]
        fn the_version_never_falls_while_counters_grow(
            steps in prop::collection::vec((0..1_u64 << 37, 0..1_u64 << 37, any::<bool>()), 1..50),
            attempt in 1..9000_u32,
        ) {
            let (mut job, mut items, mut done, mut shown) = (job(attempt, Status::Running), 0_u64, 0_u64, 0);
            for (more, accounted, split_done) in steps {
                (items, done) = (items + more, (done + accounted).min(items + more));
                job.split.done |= split_done;
                let now = version(&job, Some(&counters(items, done)));
                prop_assert!(now >= shown && now <= VERSION_MAX);
                shown = now;
            }
            job.status = Status::Completed;
            prop_assert!(version(&job, None) >= shown);
        }
    }
}
