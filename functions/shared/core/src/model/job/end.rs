//! The end of an attempt: every dispatched item is accounted for, or no function has taken the job up.

use jiff::Timestamp;

use super::states::{JobOutcome, Phase};
use super::{End, Job, SharedSlots, SplitState, Stop};
use crate::model::cost::Usage;
use crate::model::results::Results;
use crate::model::tally::Counts;

impl Job {
    /// The end of the attempt with these counts of its items, all of which are accounted for.
    pub fn end_of(
        &self,
        attempt: Counts,
        results: Option<Results>,
        finished_at: Timestamp,
        expires_at: Timestamp,
    ) -> Option<End> {
        let counts = self.merged(attempt);
        let outcome = match &self.phase {
            // The split comes before the end, and its lease takes the job up.
            Phase::Runnable | Phase::Paused(_) if self.started_at.is_none() => return None,
            // The last chunks of a paused job may have been running at the pause: then nothing is left to hold back.
            Phase::Runnable | Phase::Paused(_) => Ok(match (outcome(counts), self.unprocessed_from()) {
                // A file that was not dispatched whole has not succeeded, even if all dispatched items did.
                (JobOutcome::Succeeded, Some(_)) => JobOutcome::Partial,
                (outcome, _) => outcome,
            }),
            Phase::Stopping(stop) => Err(stop.clone()),
            Phase::Ended(_) => return None,
        };
        Some(End { outcome, counts, results, finished_at, expires_at })
    }

    /// The end of a job that is stopped before a function took it up: there is nothing to wait for.
    pub fn end_of_untaken(&self, stop: &Stop, expires_at: Timestamp) -> Option<End> {
        let (outcome, counts) = (Err(stop.clone()), Counts::default());
        self.is_untaken().then_some(End { outcome, counts, results: None, finished_at: stop.at, expires_at })
    }

    /// The job after this end. `usage` is that of the attempt's tallies.
    #[must_use]
    pub fn ended(&self, end: &End, usage: Usage) -> Self {
        Self {
            phase: Phase::Ended(end.clone()),
            usage: self.usage + usage,
            split: SplitState { done: true, ..self.split },
            lease: None,
            composing: None,
            paused_at: None,
            resend_from: None,
            slots: SharedSlots::Held,
            completions: self.completions + 1,
            moved_at: end.finished_at,
            // Nobody waits for the time to live of its rows, and its objects have none that is shorter than a day.
            wake_at: self.kept_until(end),
            ..self.clone()
        }
    }
}

pub const fn outcome(counts: Counts) -> JobOutcome {
    match (counts.succeeded, counts.failed + counts.skipped) {
        (0, 0) => JobOutcome::Empty,
        (_, 0) => JobOutcome::Succeeded,
        (0, _) => JobOutcome::Failed,
        _ => JobOutcome::Partial,
    }
}
