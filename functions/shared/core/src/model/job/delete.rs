//! The deletion of an ended job: nobody sees it any more, and it is erased once nobody can be at work on it.

use std::time::Duration;

use jiff::Timestamp;

use super::states::Phase;
use super::{End, Job};

/// Time for which the row of a deleted job is kept if it cannot be erased.
const KEPT: Duration = Duration::from_secs(100 * 24 * 60 * 60);

impl Job {
    /// Nobody sees it from now on. It is due to be erased after `silent`: whoever has read its row before has ended by
    /// then, and writes nothing more.
    pub fn delete(&self, now: Timestamp, silent: Duration) -> Option<Self> {
        // An active one goes on writing.
        let Phase::Ended(end) = &self.phase else { return None };
        if self.deleted_at.is_some() {
            return Some(self.clone());
        }
        // The row must not expire before what it leads to is erased.
        let end = End { expires_at: end.expires_at.max(now + silent + KEPT), ..end.clone() };
        let (deleted_at, wake_at) = (Some(now), Some(now + silent));
        Some(Self { phase: Phase::Ended(end), deleted_at, wake_at, recoveries: 0, ..self.clone() })
    }

    /// When an ended job expires.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.end().map(|end| self.kept_until(end).unwrap_or(end.expires_at))
    }

    /// When the job is deleted by itself, if its owner wants that.
    pub(super) fn kept_until(&self, end: &End) -> Option<Timestamp> {
        let until = self.keep_seconds.map(|seconds| end.finished_at + Duration::from_secs(seconds))?;
        Some(until.min(end.expires_at))
    }

    /// True if nobody sees it any more: it is deleted, or has expired.
    pub fn is_gone(&self, now: Timestamp) -> bool {
        self.deleted_at.is_some() || self.expires_at().is_some_and(|at| at <= now)
    }

    /// True if it is due to be erased, now or later: nothing else is due of an ended job.
    pub const fn is_to_be_erased(&self) -> bool {
        self.is_ended() && self.wake_at.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{full_job, phases};

    #[test]
    fn an_ended_job_is_deleted_once_and_then_nothing_else_begins() {
        let (full, later) = (full_job(), Duration::from_secs(100));
        let now = full.moved_at;
        for phase in phases() {
            let job = Job { phase: phase.clone(), undone_by: None, wake_at: None, ..full.clone() };
            let deleted = job.delete(now, later);
            assert_eq!(deleted.is_some(), matches!(phase, Phase::Ended(_)), "{phase:?}");
            let Some(deleted) = deleted else { continue };
            assert_eq!((deleted.deleted_at, deleted.wake_at), (Some(now), Some(now + later)));
            assert_eq!(deleted.delete(now + later, later), Some(deleted.clone()), "again, it keeps its time");
            assert!(deleted.is_gone(now) && deleted.end().unwrap().expires_at > now + later);
            assert_eq!(deleted.undo(full.job_guid, None), None);
            let redrive = full.redrive.clone().unwrap();
            assert!(job.redrive(redrive.clone(), now, now, now).is_some());
            assert_eq!(deleted.redrive(redrive, now, now, now), None);
            assert!(deleted.claim(now + later, now + later + later, 0).is_some(), "but its erasure");
        }
    }
}
