use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_api::cost::Usage;

use super::write_lost::WriteLost;
use crate::model::job::states::{JobOutcome, Status, Transition};
use crate::model::job::{Job, SplitState, Stop, StopCode, outcome};
use crate::model::results::Results;
use crate::model::tally::{Counts, Totals};
use crate::ports::expiry;

/// Ending an attempt.
#[async_trait]
pub trait Completions: Send + Sync {
    /// Ends an attempt and gives its slots back, all or nothing. Condition: status, attempt and stop are as seen; for the
    /// end of an untaken job also that no function has taken it up. Idempotent: the same completion again changes nothing and
    /// succeeds, since the first reply was lost.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the current job.
    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost>;
}

/// The end of an attempt.
#[derive(Clone, PartialEq, Debug)]
pub struct Completion {
    /// The job as seen. Its status, attempt and stop must be unchanged.
    pub seen: Job,
    pub status: Status,
    /// The outcome of a completed attempt.
    pub outcome: Option<JobOutcome>,
    pub counts: Counts,
    /// The usage of the attempt's tallies. It is added to that of the job.
    pub usage: Usage,
    /// Where the results are, if they could be composed.
    pub results: Option<Results>,
    pub finished_at: Timestamp,
    /// When the job's rows expire.
    pub expires_at: Timestamp,
    /// The stop of a job that ends before a function took it up, written with its end; `None` for every other job.
    pub untaken: Option<Stop>,
}

impl Completion {
    /// The end of a job's attempt with these totals. The status follows from the job's stop; none if the job cannot end
    /// from its current status.
    pub fn of(
        job: &Job,
        totals: &Totals,
        results: Option<Results>,
        finished_at: Timestamp,
        retention: Duration,
    ) -> Option<Self> {
        let (status, counts) = (job.ending()?, job.merged(totals.counts));
        // A file that was not dispatched whole has not succeeded, even if all dispatched items did.
        let outcome = match (outcome(counts), job.unprocessed_from()) {
            (JobOutcome::Succeeded, Some(_)) => JobOutcome::Partial,
            (outcome, _) => outcome,
        };
        Some(Self {
            seen: job.clone(),
            status,
            outcome: (status == Status::Completed).then_some(outcome),
            counts,
            usage: totals.usage,
            results,
            finished_at,
            expires_at: expiry(finished_at, retention),
            untaken: None,
        })
    }

    /// The end of a job that is stopped before a function took it up. None if one has.
    pub fn of_untaken(job: &Job, stop: &Stop, retention: Duration) -> Option<Self> {
        let by = match stop.code {
            StopCode::Cancelled => Transition::CancelUntaken,
            _ => Transition::FailUntaken,
        };
        let status = by.apply(job.status).filter(|_| job.is_untaken())?;
        Some(Self {
            seen: job.clone(),
            status,
            outcome: None,
            counts: Counts::default(),
            usage: Usage::NONE,
            results: None,
            finished_at: stop.at,
            expires_at: expiry(stop.at, retention),
            untaken: Some(stop.clone()),
        })
    }

    /// The job after the completion.
    pub fn job(&self) -> Job {
        Job {
            status: self.status,
            outcome: self.outcome,
            counts: Some(self.counts),
            usage: self.seen.usage + self.usage,
            results: self.results,
            stop: self.untaken.clone().or_else(|| self.seen.stop.clone()),
            split: SplitState { done: self.seen.split.done || self.untaken.is_some(), ..self.seen.split },
            completions: self.seen.completions + 1,
            finished_at: Some(self.finished_at),
            moved_at: self.finished_at,
            wake_at: None,
            expires_at: Some(self.expires_at),
            revision: self.seen.revision + 1,
            ..self.seen.between_attempts()
        }
    }

    /// Whether this completion already ended the job: it was applied earlier and its reply lost.
    pub fn has_ended(&self, job: &Job) -> bool {
        (job.status, job.attempt, job.completions) == (self.status, self.seen.attempt, self.seen.completions + 1)
            && (job.finished_at, job.counts) == (Some(self.finished_at), Some(self.counts))
    }
}
