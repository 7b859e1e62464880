//! Waiting for what a job needs before its first split: a file that is fetched, or another job.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::states::{JobOutcome, Phase};
use super::{Job, SharedSlots, SplitState, data_bytes};
use crate::model::ids::JobGuid;
use crate::model::spec::{AwaitedFile, Source, Spec};
use crate::model::warnings::{self, Warning};

/// What a job waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Awaits {
    /// The end of this job.
    Job(JobGuid),
    /// Its own file, which is fetched.
    File,
    /// The list of its files.
    Files,
}

impl Job {
    /// True if it waits before its split, and nothing has stopped it.
    pub const fn is_awaiting(&self) -> bool {
        self.awaits.is_some() && self.is_open()
    }

    /// All that it will wait for, each by its name: an upload or a job.
    pub fn awaited(&self, source: &Source) -> Vec<Uuid> {
        let job = match self.awaits {
            Some(Awaits::Job(job)) => Some(job.0),
            Some(Awaits::File | Awaits::Files) | None => None,
        };
        let file = match source {
            Source::Awaited(AwaitedFile::Upload(file_guid)) => Some(file_guid.0),
            _ => None,
        };
        job.into_iter().chain(file).collect()
    }

    /// A new job that waits. Shared slots are for others meanwhile.
    #[must_use]
    pub fn awaiting(self, awaits: Option<Awaits>) -> Self {
        let slots = if awaits.is_some() { SharedSlots::Returned } else { self.slots };
        Self { awaits, slots, ..self }
    }

    /// It waits for this now.
    pub fn wait_for(&self, awaits: Awaits, now: Timestamp) -> Option<Self> {
        let moved_at = if self.awaits == Some(awaits) { self.moved_at } else { now };
        self.goes_on().then(|| Self { awaits: Some(awaits), moved_at, ..self.clone() })
    }

    /// All is there, and this is the spec now: it may be split. It takes its shared slots.
    pub fn found(&self, spec: &Spec, warnings: &[Warning], now: Timestamp) -> Option<Self> {
        let mut all = self.warnings.clone();
        warnings::add(&mut all, warnings::of_columns(&spec.head));
        warnings::add(&mut all, warnings.to_vec());
        self.goes_on().then(|| Self {
            awaits: None,
            is_stored: spec.source.is_stored(),
            files: spec.source.files(),
            data_start: spec.head.data_start,
            data_bytes: data_bytes(spec),
            warnings: all,
            split: SplitState::from(spec.head.data_start),
            slots: SharedSlots::Held,
            // It goes on, like one that is resumed: messages from before do not stop it.
            epoch: self.epoch + 1,
            recoveries: 0,
            moved_at: now,
            wake_at: Some(now),
            ..self.clone()
        })
    }

    /// True if it waits, and nothing holds it back.
    pub fn goes_on(&self) -> bool {
        self.awaits.is_some() && matches!(self.phase, Phase::Runnable)
    }

    /// Whether a job that waits for this one may start; none while this one is active.
    pub fn has_ended_well(&self) -> Option<bool> {
        let outcome = self.end()?.outcome.as_ref();
        Some(outcome.is_ok_and(|outcome| *outcome != JobOutcome::Failed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_tests::at;
    use super::*;
    use crate::fixtures;
    use crate::model::ids::RunId;
    use crate::model::job::states::Status;
    use crate::model::job::{Lease, Stop, StopCode};

    fn awaiting() -> Job {
        Job { data_bytes: 0, ..fixtures::job() }.awaiting(Some(Awaits::File))
    }

    #[test]
    fn what_is_found_takes_the_place_of_what_was_awaited_once() {
        let (mut spec, waiting) = (fixtures::spec(), awaiting());
        assert!(!waiting.has_shared_slots());
        assert_eq!(waiting.wait_for(Awaits::File, at(4)), Some(waiting.clone()), "nothing has moved");
        spec.head.data_start = 7;
        if let Source::File(file) = &mut spec.source {
            file.size = 100;
        }
        let found = waiting.found(&spec, &[warnings::trailing_bytes(7)], at(9)).unwrap();
        assert_eq!((found.data_start, found.data_bytes, found.split.cursor.offset), (7, 93, 7));
        assert!(found.has_shared_slots() && !found.is_awaiting() && found.warnings.len() == 1);
        assert_eq!((found.epoch, found.wake_at), (1, Some(at(9))), "older messages are from before");
        assert_eq!((found.found(&spec, &[], at(10)), found.wait_for(Awaits::File, at(10))), (None, None));
    }

    #[test]
    fn a_job_that_is_paused_or_stopped_finds_nothing() {
        let stop = Stop::because(StopCode::Cancelled, "", at(4));
        for held in [awaiting().pause(at(4)).unwrap(), awaiting().stop(&stop).unwrap()] {
            assert_eq!(held.found(&fixtures::spec(), &[], at(9)), None);
            assert_eq!(held.wait_for(Awaits::File, at(9)), None);
        }
        assert_eq!(fixtures::job().wait_for(Awaits::File, at(9)), None, "it waits for nothing");
    }

    #[test]
    fn a_job_that_waits_is_not_leased() {
        let lease = Lease { holder: RunId::from_bytes([1; 7]), until: at(50) };
        let stop = Stop::because(StopCode::Cancelled, "", at(4));
        assert_eq!(awaiting().take(lease, at(9)), None);
        assert!(awaiting().stop(&stop).unwrap().take(lease, at(9)).is_some(), "to end it");
    }

    #[test]
    fn a_job_has_ended_well_unless_no_item_of_it_succeeded_or_it_was_stopped() {
        let of = |status| fixtures::job_in(status).has_ended_well();
        assert_eq!([Status::Running, Status::Completed, Status::Failed].map(of), [None, Some(true), Some(false)]);
    }
}
