//! The lease: the right of one run to split a job or to end it. All other transitions need no lease.

use std::time::Duration;

use jiff::Timestamp;

use super::Job;
use super::states::Phase;
use crate::model::ids::RunId;

/// The right to split a job or to end it alone, until it expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    pub holder: RunId,
    /// When it expires; from then on any run may take it.
    pub until: Timestamp,
}

/// Time for which a lease outlasts the invocation that takes it. So no other run works on the job before that
/// invocation is over, even if the clocks of the two differ.
pub const LEASE_MARGIN: Duration = Duration::from_secs(20);

impl Job {
    /// The job under this lease: the lease is free, has expired, or is held by the same run. A waiting job is running
    /// from then on.
    pub fn take(&self, lease: Lease, now: Timestamp) -> Option<Self> {
        let is_free = self.lease.is_none_or(|held| held.until <= now || held.holder == lease.holder);
        let may_be_leased = match &self.phase {
            // Every continuation and recovery takes it again; of a stopped job the split or the attempt ends.
            Phase::Stopping(_) => true,
            Phase::Runnable => self.awaits.is_none(),
            // To be completed, but not to be split.
            Phase::Paused(_) => self.split.done,
            Phase::Ended(_) => false,
        };
        (is_free && may_be_leased).then(|| Self {
            lease: Some(lease),
            started_at: self.started_at.or(Some(now)),
            moved_at: now,
            ..self.clone()
        })
    }

    /// The job without the lease of this run.
    #[must_use]
    pub fn release(&self, holder: RunId) -> Self {
        Self { lease: self.lease.filter(|lease| lease.holder != holder), ..self.clone() }
    }

    pub fn is_held_by(&self, holder: RunId) -> bool {
        self.lease.is_some_and(|lease| lease.holder == holder)
    }
}
