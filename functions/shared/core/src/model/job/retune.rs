//! Retuning: the owner changes limits of an active job.

use jiff::Timestamp;

use super::{Job, Priority};
use crate::model::spec::Tolerance;

/// The limits of a job that its owner may change. `None` leaves one as it is.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tuning {
    pub tolerance: Option<Tolerance>,
    pub max_concurrency: Option<u32>,
    pub priority: Option<Priority>,
    pub deadline_at: Option<Timestamp>,
}

impl Job {
    /// Gives it these limits. Their readers ask the row, each at its next look. A job that has them stays as it is.
    pub fn retune(&self, tuning: &Tuning, now: Timestamp) -> Option<Self> {
        // A stop stays, whatever the limits.
        if !self.is_open() {
            return None;
        }
        let deadline_at = tuning.deadline_at.unwrap_or(self.deadline_at);
        // A sweep that looks at the job meanwhile sets its next look by the deadline of the row.
        let wake_at = self.wake_at.filter(|_| deadline_at != self.deadline_at).map(|at| at.min(deadline_at));
        // `moved_at` stays: this is no sign of life.
        let next = Self {
            tolerance: tuning.tolerance.or(self.tolerance),
            priority: tuning.priority.unwrap_or(self.priority),
            deadline_at,
            wake_at: wake_at.or(self.wake_at),
            ..self.clone()
        };
        match tuning.max_concurrency {
            Some(width) => next.with_width(width, now),
            None => Some(next),
        }
    }
}
