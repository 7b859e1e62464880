//! The version of a job's view: a number by which a client tells a newer view from an older one.

use rowmill_core::model::job::Job;
use rowmill_core::progress::counters::Counters;

/// The bits of the attempt, of its end and of the progress: 53 together, so that every version is exact as a double.
const ATTEMPT_BITS: u32 = 13;
const PROGRESS_BITS: u32 = 39;

/// The largest version, 2^53 − 1.
pub const VERSION_MAX: u64 = (1 << (ATTEMPT_BITS + 1 + PROGRESS_BITS)) - 1;

/// The version of the view of this job with these counters.
///
/// Attempt, end and progress in this order of weight. The progress is a sum of numbers that only grow within an
/// attempt: the writes of the job row, and, until the attempt has ended, the items of the tallies and those accounted
/// for. So a later view never has a smaller version, and a view with more progress or of a newer job row has a larger
/// one, up to 8,191 attempts and 2^38 items.
pub fn version(job: &Job, counters: Option<&Counters>) -> u64 {
    let attempt = u64::from(job.attempt);
    if attempt >> ATTEMPT_BITS > 0 {
        return VERSION_MAX;
    }
    let counted = |counters: &Counters| counters.items().saturating_add(counters.counts().sum());
    let of_counters = counters.filter(|_| !job.is_ended()).map_or(0, counted);
    let progress = job.revision.saturating_add(of_counters).min((1 << PROGRESS_BITS) - 1);
    (((attempt << 1) | u64::from(job.is_ended())) << PROGRESS_BITS) | progress
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rowmill_core::model::job::states::Status;
    use rowmill_core::model::tally::{Counts, Totals};
    use rowmill_testing::fixtures;

    fn counters(items: u64, succeeded: u64) -> Counters {
        let counts = Counts { succeeded, ..Counts::default() };
        Counters { totals: Totals { items, counts, ..Totals::default() }, open: Vec::new(), at_work: None }
    }

    #[test]
    fn every_step_of_a_life_has_a_larger_version() {
        let at = |attempt, revision, status| Job { attempt, revision, ..fixtures::job_in(status) };
        let busy = counters(u64::from(u32::MAX) * 64, u64::from(u32::MAX) * 64);
        let life = [
            version(&at(1, 0, Status::Waiting), None),
            version(&at(1, 1, Status::Running), Some(&counters(0, 0))),
            version(&at(1, 1, Status::Running), Some(&counters(1, 0))),
            version(&at(1, 1, Status::Running), Some(&counters(1, 1))),
            version(&at(1, 2, Status::Paused), Some(&counters(1, 1))),
            version(&at(1, 3, Status::Running), Some(&busy)),
            version(&at(1, 4, Status::Completed), None),
            version(&at(2, 5, Status::Running), Some(&counters(0, 0))),
            version(&at(2, 6, Status::Cancelled), Some(&busy)),
            version(&at(8191, 7, Status::Running), None),
            version(&at(8192, 8, Status::Running), None),
        ];
        assert!(life.windows(2).all(|pair| pair[0] < pair[1]), "{life:?}");
        assert_eq!(version(&at(u32::MAX, 9, Status::Waiting), None), VERSION_MAX);
        assert_eq!(VERSION_MAX, 9_007_199_254_740_991, "as in the document");
    }

    proptest! {
        #[test]
        fn the_version_never_falls_while_counters_grow(
            steps in prop::collection::vec((0..1_u64 << 37, 0..1_u64 << 37, 0..3_u64), 1..50),
            attempt in 1..9000_u32,
        ) {
            let mut job = Job { attempt, ..fixtures::job_in(Status::Running) };
            let (mut items, mut done, mut shown) = (0_u64, 0_u64, 0);
            for (more, accounted, writes) in steps {
                (items, done) = (items + more, (done + accounted).min(items + more));
                job.revision += writes;
                let now = version(&job, Some(&counters(items, done)));
                prop_assert!(now >= shown && now <= VERSION_MAX);
                shown = now;
            }
            let ended = Job { attempt, revision: job.revision + 1, ..fixtures::job_in(Status::Completed) };
            prop_assert!(version(&ended, None) >= shown);
        }
    }
}
