//! The undo of a job is a job of its own, which the row of the undone one names.

use super::{End, Job};
use crate::model::ids::JobGuid;

impl Job {
    /// It is undone by this job, in place of one that did not come to its end if there is one, and gets no further
    /// attempt.
    pub fn undo(&self, by: JobGuid, in_place_of: Option<JobGuid>) -> Option<Self> {
        // Active, it may still write records.
        let starts = self.is_ended() && self.undone_by == in_place_of && self.deleted_at.is_none();
        starts.then(|| Self { undone_by: Some(by), ..self.clone() })
    }

    /// True if it has ended and left items undone.
    pub fn has_left_items(&self) -> bool {
        let left = |end: &End| end.outcome.is_err() || end.counts.failed > 0 || end.counts.skipped > 0;
        self.end().is_some_and(left)
    }
}
