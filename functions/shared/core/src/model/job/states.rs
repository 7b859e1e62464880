//! The states of a job, and every transition between them with its reason.
//!
//! ```text
//! waiting ──► running ──► completed | failed
//!    │           │  paused ──► completed
//!    └──────────┴────┴──► cancelling ──► cancelled
//! waiting ──► cancelled | failed                     (nobody has taken it up; also out of a pause)
//! waiting | running ──► paused ──► waiting | running   (where it was paused)
//! completed | failed | cancelled ──► running        (redrive, the next attempt)
//! ```

pub use rowmill_api::status::{JobOutcome, Status};

/// A transition from one status to the next, by its reason.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transition {
    /// `split-job` took the lease for the first time.
    Take,
    /// The owner paused it, or the breaker of its job type.
    Pause,
    /// The owner or the breaker resumed it, or it was stopped, and it had been paused while it ran.
    Resume,
    /// The owner or the breaker resumed it, or it was stopped, and it had been paused before a function took it up.
    ResumeWaiting,
    Cancel,
    /// The owner cancelled it before a function took it up.
    CancelUntaken,
    /// Its deadline passed before a function took it up.
    FailUntaken,
    /// `complete-job` found every dispatched item accounted for, and the job was not stopped.
    Complete,
    /// `complete-job` found every dispatched item accounted for after the job had been stopped by an error.
    Fail,
    /// `complete-job` found every dispatched item accounted for after the owner had cancelled.
    EndCancelled,
    /// The owner asked for another attempt over the failed items.
    Redrive,
}

impl Transition {
    pub const ALL: [Self; 11] = [
        Self::Take,
        Self::Pause,
        Self::Resume,
        Self::ResumeWaiting,
        Self::Cancel,
        Self::CancelUntaken,
        Self::FailUntaken,
        Self::Complete,
        Self::Fail,
        Self::EndCancelled,
        Self::Redrive,
    ];

    /// The transition that ends a pause which began in this status.
    pub const fn out_of_pause(paused_from: Option<Status>) -> Self {
        match paused_from {
            Some(Status::Waiting) => Self::ResumeWaiting,
            _ => Self::Resume,
        }
    }

    /// The status that this transition leads to from `status`; none if it does not start there.
    pub const fn apply(self, status: Status) -> Option<Status> {
        match (status, self) {
            // Every continuation and recovery takes the lease again: a running job stays running.
            (Status::Waiting | Status::Running, Self::Take) => Some(Status::Running),
            // Also before its split begins. A stopped job is not paused: it is about to end.
            (Status::Waiting | Status::Running, Self::Pause) => Some(Status::Paused),
            // A stop ends a pause, so a paused job has no stop.
            (Status::Paused, Self::Resume) => Some(Status::Running),
            // It has not run, so it does not become `running`, which would announce its start.
            (Status::Paused, Self::ResumeWaiting) => Some(Status::Waiting),
            // A job may be cancelled before its split begins; the splitter then finds the stop and dispatches nothing.
            (Status::Waiting | Status::Running | Status::Paused, Self::Cancel) => Some(Status::Cancelling),
            // Nothing was dispatched and no run is at work, so there is nothing to wait for. `Job::is_untaken` says whether a
            // paused job had been taken up.
            (Status::Waiting | Status::Paused, Self::CancelUntaken) => Some(Status::Cancelled),
            (Status::Waiting | Status::Paused, Self::FailUntaken) => Some(Status::Failed),
            // The split comes before completion, so a waiting job cannot complete: its first lease makes it `running`.
            // The last chunks of a paused job may have been running when it was paused: then nothing is left to hold back.
            (Status::Running | Status::Paused, Self::Complete) => Some(Status::Completed),
            (Status::Running, Self::Fail) => Some(Status::Failed),
            // An error cannot overtake a cancel: the first stop stays, so a cancelling job can only end cancelled.
            (Status::Cancelling, Self::EndCancelled) => Some(Status::Cancelled),
            // Only an ended job can be redriven; a running job may still get more failed items.
            (Status::Completed | Status::Failed | Status::Cancelled, Self::Redrive) => Some(Status::Running),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_pair_of_status_and_transition_is_as_documented() {
        use Status::*;
        let allowed = [
            (Waiting, Transition::Take, Running),
            (Running, Transition::Take, Running),
            (Waiting, Transition::Pause, Paused),
            (Running, Transition::Pause, Paused),
            (Paused, Transition::Resume, Running),
            (Paused, Transition::ResumeWaiting, Waiting),
            (Paused, Transition::Complete, Completed),
            (Paused, Transition::Cancel, Cancelling),
            (Waiting, Transition::Cancel, Cancelling),
            (Waiting, Transition::CancelUntaken, Cancelled),
            (Paused, Transition::CancelUntaken, Cancelled),
            (Waiting, Transition::FailUntaken, Failed),
            (Paused, Transition::FailUntaken, Failed),
            (Running, Transition::Cancel, Cancelling),
            (Running, Transition::Complete, Completed),
            (Running, Transition::Fail, Failed),
            (Cancelling, Transition::EndCancelled, Cancelled),
            (Completed, Transition::Redrive, Running),
            (Failed, Transition::Redrive, Running),
            (Cancelled, Transition::Redrive, Running),
        ];
        for from in Status::ALL {
            for by in Transition::ALL {
                let expected = allowed.iter().find(|(f, b, _)| (*f, *b) == (from, by)).map(|(.., to)| *to);
                assert_eq!(by.apply(from), expected, "{from:?} by {by:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn only_a_redrive_leaves_a_terminal_status(moves in prop::collection::vec(0..Transition::ALL.len(), 0..40)) {
            let mut status = Status::Waiting;
            for index in moves {
                let by = Transition::ALL[index];
                if let Some(next) = by.apply(status) {
                    prop_assert!(!status.is_terminal() || by == Transition::Redrive);
                    prop_assert!(next != Status::Waiting || by == Transition::ResumeWaiting, "only such a resume leads back");
                    status = next;
                }
            }
        }
    }
}
