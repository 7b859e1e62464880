//! The slots of an active job: one of its owner, and two shared with other owners: one of its type, one of the system.
//!
//! A job that is paused for long gives the shared ones back, so that others get them. Its owner's stays: a resume need
//! not wait for the owner's own jobs.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::states::Phase;
use super::{Job, Stop, StopCode};

/// State of the shared slots of an active job. The job has its owner's slot until it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SharedSlots {
    #[default]
    Held,
    /// Given back by a paused job. They stay so if it is stopped or completes.
    Returned,
    /// As [`Returned`](Self::Returned), and it was resumed when there were none: the sweep resumes it when there are.
    Awaited,
}

impl Stop {
    /// Its owner has paused it for longer than a pause may last.
    pub fn paused_too_long(longest: Duration, at: Timestamp) -> Self {
        let seconds = longest.as_secs();
        let message = format!(
            "the job was paused for longer than the {seconds} s that a pause may last, so it was stopped; redrive its failed \
             rows, or create a new job for the rest"
        );
        Self::because(StopCode::PausedTooLong, message, at)
    }
}

impl Job {
    /// True if the counters of its type and of the system count it.
    pub const fn has_shared_slots(&self) -> bool {
        !self.is_ended() && matches!(self.slots, SharedSlots::Held)
    }

    /// True if it was resumed, and stays paused until shared slots are free.
    pub const fn awaits_slots(&self) -> bool {
        self.is_paused() && matches!(self.slots, SharedSlots::Awaited)
    }

    /// True if it has been paused for this long.
    pub fn is_paused_for(&self, time: Duration, now: Timestamp) -> bool {
        self.is_paused() && self.paused_at.is_some_and(|at| at + time <= now)
    }

    /// Gives its shared slots back once it has been paused for `grace`, in which its runs end. One without any stays.
    pub fn return_slots(&self, grace: Duration, now: Timestamp) -> Option<Self> {
        let slots = if self.has_shared_slots() { SharedSlots::Returned } else { self.slots };
        let returned = Self { slots, moved_at: if slots == self.slots { self.moved_at } else { now }, ..self.clone() };
        self.is_paused_for(grace, now).then_some(returned)
    }

    /// The job in place of `resumed`, for which no shared slots are free. Nothing but a slot keeps it from running
    /// then, so neither its owner's pause nor the breaker's is left.
    #[must_use]
    pub fn await_slots(&self, resumed: &Self) -> Self {
        if self.awaits_slots() {
            return self.clone();
        }
        Self {
            phase: Phase::Paused(None),
            slots: SharedSlots::Awaited,
            recoveries: 0,
            moved_at: resumed.moved_at,
            wake_at: resumed.wake_at,
            ..self.clone()
        }
    }

    /// Stops a job that its owner has paused for longer than this.
    pub fn stop_long_pause(&self, longest: Duration, now: Timestamp) -> Option<Self> {
        let is_too_long = self.is_paused_by_owner() && self.is_paused_for(longest, now);
        self.stop(&Stop::paused_too_long(longest, now)).filter(|_| is_too_long)
    }

    /// Resumes a job that waits for shared slots, if it is still in this epoch.
    pub fn resume_awaiting(&self, epoch: u32, now: Timestamp) -> Option<Self> {
        let is_same = self.epoch == epoch && self.awaits_slots();
        self.resume(now).filter(|_| is_same)
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_tests::{at, running};
    use super::*;
    use crate::model::breaker::BreakerPause;

    const TIME: Duration = Duration::from_secs(10);

    fn returned() -> Job {
        running().pause(at(2)).unwrap().return_slots(TIME, at(12)).unwrap()
    }

    fn awaiting() -> Job {
        returned().await_slots(&returned().resume(at(20)).unwrap())
    }

    #[test]
    fn slots_are_given_back_once_after_the_grace() {
        let paused = running().pause(at(2)).unwrap();
        assert_eq!((running().return_slots(TIME, at(99)), paused.return_slots(TIME, at(11))), (None, None));
        assert_eq!((returned().slots, returned().moved_at), (SharedSlots::Returned, at(12)));
        assert_eq!(returned().return_slots(TIME, at(13)), Some(returned()), "again");
    }

    #[test]
    fn only_a_job_that_waits_is_resumed_for_a_slot_and_only_if_nobody_was_first() {
        let epoch = awaiting().epoch;
        assert!(awaiting().resume_awaiting(epoch, at(30)).is_some_and(|job| !job.is_paused()));
        assert_eq!(awaiting().resume_awaiting(epoch - 1, at(30)), None, "paused or resumed since");
        assert_eq!(returned().resume_awaiting(returned().epoch, at(30)), None, "paused by its owner");
    }

    #[test]
    fn a_job_that_waits_stays_as_it_is_when_it_is_resumed_again() {
        let waiting = Job { recoveries: 3, ..awaiting() };
        assert_eq!(waiting.await_slots(&waiting.resume(at(30)).unwrap()), waiting);
    }

    #[test]
    fn only_a_pause_of_the_owner_is_too_long() {
        let paused = running().pause(at(2)).unwrap();
        assert!(paused.stop_long_pause(TIME, at(12)).is_some_and(|job| job.is_stopped()));
        assert_eq!(paused.stop_long_pause(TIME, at(11)), None);
        let reason = BreakerPause::after("unavailable", "it answered 503", at(2));
        let by_breaker = running().pause_by_breaker(&reason, at(3), at(2)).unwrap();
        assert_eq!((by_breaker.stop_long_pause(TIME, at(99)), awaiting().stop_long_pause(TIME, at(99))), (None, None));
    }
}
