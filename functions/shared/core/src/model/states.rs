//! The states of a job, every move between them and the reason for each.
//!
//! ```text
//! waiting ──► running ──► completed | failed
//!    └──────────┴───────► cancelling ──► cancelled
//! completed | failed | cancelled ──► running        (redrive, the next attempt)
//! ```

use serde::{Deserialize, Serialize};

/// Where a job is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Created and admitted; no function has taken it up yet.
    Waiting,
    /// Being split, processed or completed.
    Running,
    /// Told to stop by its owner; what runs comes to an end, what is queued is skipped.
    Cancelling,
    /// All items are accounted for; how it went is its outcome.
    Completed,
    /// Ended by an error of the whole job: what was done before it counts, the rest is skipped or was never dispatched.
    Failed,
    /// Ended by its owner.
    Cancelled,
}

impl Status {
    /// Every status, in the order of a job's life.
    pub const ALL: [Self; 6] =
        [Self::Waiting, Self::Running, Self::Cancelling, Self::Completed, Self::Failed, Self::Cancelled];

    /// Whether nothing moves any more unless the job is redriven.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The word used in the API and in the job row.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of this name, if there is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// Why a job moves from one status to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transition {
    /// `split-job` took the lease for the first time.
    Take,
    /// The owner cancelled it.
    Cancel,
    /// `complete-job` found every dispatched item accounted for, and nothing had stopped the job.
    Complete,
    /// `complete-job` found every dispatched item accounted for after the job had been stopped by an error.
    Fail,
    /// `complete-job` found every dispatched item accounted for after the owner had cancelled.
    EndCancelled,
    /// The owner asked for another attempt over the failed items.
    Redrive,
}

impl Transition {
    /// Every move.
    pub const ALL: [Self; 6] =
        [Self::Take, Self::Cancel, Self::Complete, Self::Fail, Self::EndCancelled, Self::Redrive];
}

impl Status {
    /// Where `by` leads from here, or `None` where that move is not one of this status.
    pub const fn after(self, by: Transition) -> Option<Self> {
        match (self, by) {
            // The lease is taken again by every continuation and recovery: a running job stays running.
            (Self::Waiting | Self::Running, Transition::Take) => Some(Self::Running),
            // A job may be cancelled before anybody took it up; the splitter then finds the stop and dispatches nothing.
            (Self::Waiting | Self::Running, Transition::Cancel) => Some(Self::Cancelling),
            // Splitting always comes before completion, so a waiting job cannot complete: its first lease made it run.
            (Self::Running, Transition::Complete) => Some(Self::Completed),
            (Self::Running, Transition::Fail) => Some(Self::Failed),
            // An error cannot overtake a cancel: the first stop stays, so a cancelling job only ends cancelled.
            (Self::Cancelling, Transition::EndCancelled) => Some(Self::Cancelled),
            // Only what has ended can be tried again; a running job's failures may still grow.
            (Self::Completed | Self::Failed | Self::Cancelled, Transition::Redrive) => Some(Self::Running),
            _ => None,
        }
    }
}

/// How a completed job went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobOutcome {
    /// Every item succeeded (or there was none).
    Succeeded,
    /// Some items succeeded, some did not.
    Partial,
    /// No item succeeded.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_pair_of_status_and_move_leads_where_the_picture_says() {
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
                assert_eq!(from.after(by), expected, "{from:?} by {by:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_sequence_of_moves_leaves_a_terminal_status_but_by_redrive(moves in prop::collection::vec(0..Transition::ALL.len(), 0..40)) {
            let mut status = Status::Waiting;
            for index in moves {
                let by = Transition::ALL[index];
                if let Some(next) = status.after(by) {
                    prop_assert!(!status.is_terminal() || by == Transition::Redrive);
                    prop_assert!(next != Status::Waiting, "nothing goes back to waiting");
                    status = next;
                }
            }
        }
    }

    #[test]
    fn a_status_reads_back_as_it_was_written() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert_eq!(Status::parse("done"), None);
    }
}
