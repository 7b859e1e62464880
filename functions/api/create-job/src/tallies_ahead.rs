//! How many tallies of a new job are sent ahead: with twice as many chunks as can run at once.
//!
//! That keeps all workers busy, and another job of the same owner waits for no more than these. The number is kept in the job
//! row and never changes.

use rowmill_core::model::lanes::TypeLimits;
use rowmill_core::model::tally::CHUNKS_PER_TALLY;

use crate::limits::CreateLimits;

/// The tallies ahead of a new job, see [`Job::tallies_ahead`](rowmill_core::model::job::Job::tallies_ahead).
pub fn of_job(created: &CreateLimits, of_type: TypeLimits, max_concurrency: Option<u32>) -> Option<u32> {
    if max_concurrency.is_some() {
        return None;
    }
    let at_once = of_type.concurrency.unwrap_or(created.workers.saturating_mul(created.chunks_per_invocation));
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
        let ahead =
            |created, concurrency, width| of_job(&created, TypeLimits { concurrency, ..TypeLimits::default() }, width);
        assert_eq!(ahead(created(50, 10), None, None), Some(16));
        assert_eq!(ahead(created(1000, 10), None, None), Some(313));
        assert_eq!(ahead(created(50, 1), None, None), Some(2));
        assert_eq!(ahead(created(u32::MAX, u32::MAX), None, None), Some(u32::MAX.div_ceil(64)));
        assert_eq!(ahead(created(0, 0), None, None), Some(2));
        assert_eq!(ahead(created(50, 10), Some(1), None), Some(2), "as many chunks run at once as it has lanes");
        assert_eq!(ahead(created(50, 10), Some(100), None), Some(4));
        assert_eq!(ahead(created(50, 10), None, Some(7)), None, "its own bound holds");
    }
}
