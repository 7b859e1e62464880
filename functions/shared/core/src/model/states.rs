//! The states of a job, and every transition between them with its reason.
//!
//! ```text
//! waiting ──► running ──► completed | failed
//!    └──────────┴───────► cancelling ──► cancelled
//! completed | failed | cancelled ──► running        (redrive, the next attempt)
//! ```

pub use rowmill_api::status::{JobOutcome, Status};

/// A transition from one status to the next, by its reason.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transition {
    /// `split-job` took the lease for the first time.
    Take,
    /// The owner cancelled it.
    Cancel,
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
    /// Every transition.
    pub const ALL: [Self; 6] =
        [Self::Take, Self::Cancel, Self::Complete, Self::Fail, Self::EndCancelled, Self::Redrive];

    /// The status that this transition leads to from `status`; none if it does not start there.
    pub const fn apply(self, status: Status) -> Option<Status> {
        match (status, self) {
            // Every continuation and recovery takes the lease again: a running job stays running.
            (Status::Waiting | Status::Running, Self::Take) => Some(Status::Running),
            // A job may be cancelled before its split begins; the splitter then finds the stop and dispatches nothing.
            (Status::Waiting | Status::Running, Self::Cancel) => Some(Status::Cancelling),
            // The split comes before completion, so a waiting job cannot complete: its first lease makes it `running`.
            (Status::Running, Self::Complete) => Some(Status::Completed),
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
            (Waiting, Transition::Cancel, Cancelling),
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
                    prop_assert!(next != Status::Waiting, "no transition leads back to waiting");
                    status = next;
                }
            }
        }
    }
}
