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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::states::Phase;
    use super::*;
    use crate::fixtures::{full_job, phases};

    #[test]
    fn an_ended_job_is_undone_by_one_job_and_then_gets_no_attempt() {
        let full = full_job();
        let (by, other) = (JobGuid(Uuid::from_u128(1)), JobGuid(Uuid::from_u128(2)));
        let (now, redrive) = (full.moved_at, full.redrive.clone().unwrap());
        for phase in phases() {
            let job = Job { phase: phase.clone(), undone_by: None, ..full.clone() };
            let undone = job.undo(by, None);
            assert_eq!(undone.is_some(), matches!(phase, Phase::Ended(_)), "{phase:?}");
            let Some(undone) = undone else { continue };
            assert_eq!(undone.undone_by, Some(by));
            assert_eq!((undone.undo(other, None), job.undo(other, Some(by))), (None, None));
            assert_eq!(
                undone.undo(other, Some(by)).and_then(|job| job.undone_by),
                Some(other),
                "in place of the first"
            );
            assert!(job.redrive(redrive.clone(), now, now, now).is_some());
            assert_eq!(undone.redrive(redrive.clone(), now, now, now), None);
        }
    }
}
