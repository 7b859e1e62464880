//! The number of tallies of a new job that are sent ahead: with twice as many chunks as can run at once.
//!
//! That keeps all workers busy, and another job of the same owner waits for little more than these. The number is kept
//! in the job row and never changes.

use rowmill_core::model::job::Priority;
use rowmill_core::model::job_type_limits::TypeLimits;
use rowmill_core::model::tally::CHUNKS_PER_TALLY;

use crate::limits::CreateLimits;
use crate::request::CreateJobRequest;

/// The tallies ahead of a new job, see [`Job::tallies_ahead`](rowmill_core::model::job::Job::tallies_ahead).
pub fn of_job(
    created: &CreateLimits,
    of_type: TypeLimits,
    priority: Priority,
    request: &CreateJobRequest,
) -> Option<u32> {
    if request.max_concurrency.is_some() {
        return None;
    }
    let workers = if priority == Priority::Low { created.low_workers } else { created.workers };
    let at_once = of_type.concurrency.unwrap_or(workers.saturating_mul(created.chunks_per_invocation));
    let tallies = at_once.saturating_mul(2).div_ceil(CHUNKS_PER_TALLY as u32);
    Some(tallies.max(created.tallies_ahead_min).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_tallies_are_sent_ahead_as_keep_all_workers_busy() {
        let created =
            |workers, chunks_per_invocation| CreateLimits { workers, chunks_per_invocation, ..CreateLimits::default() };
        let ahead = |created, concurrency, priority| {
            let of_type = TypeLimits { concurrency, ..TypeLimits::default() };
            of_job(&created, of_type, priority, &CreateJobRequest::default())
        };
        let normal = Priority::Normal;
        assert_eq!(ahead(created(50, 10), None, normal), Some(16));
        assert_eq!(ahead(created(50, 10), None, Priority::High), Some(16));
        assert_eq!(ahead(created(50, 10), None, Priority::Low), Some(4), "it has ten workers");
        assert_eq!(ahead(created(1000, 10), None, normal), Some(313));
        assert_eq!(ahead(created(50, 1), None, normal), Some(2));
        assert_eq!(ahead(created(u32::MAX, u32::MAX), None, normal), Some(u32::MAX.div_ceil(64)));
        assert_eq!(ahead(created(0, 0), None, normal), Some(2));
        assert_eq!(ahead(created(50, 10), Some(1), normal), Some(2), "as many chunks run at once as it has lanes");
        assert_eq!(ahead(created(50, 10), Some(100), Priority::Low), Some(4), "lanes know no priority");
        let bounded = CreateJobRequest { max_concurrency: Some(7), ..CreateJobRequest::default() };
        assert_eq!(of_job(&created(50, 10), TypeLimits::default(), normal, &bounded), None, "its own bound holds");
    }
}
