use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::write_lost::WriteLost;
use crate::model::cost::Usage;
use crate::model::job::{End, Job, Stop};
use crate::model::results::Results;
use crate::model::tally::Totals;
use crate::ports::expiry;

#[async_trait]
pub trait Completions: Send + Sync {
    /// Ends an attempt and gives its slots back, all or nothing. Condition: status, attempt and stop are as seen; for
    /// the end of an untaken job also that no function has taken it up, and the deadline. Idempotent: the same
    /// completion again changes nothing and succeeds, since the first reply was lost.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the current job.
    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost>;
}

/// The end of an attempt of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct Completion {
    /// The job as seen. Its status, attempt and stop must be unchanged; if it is untaken, also that and its deadline.
    pub seen: Job,
    pub end: End,
    /// The usage of the attempt's tallies. It is added to that of the job.
    pub usage: Usage,
}

impl Completion {
    /// The end of a job's attempt with these totals; none if the job cannot end.
    pub fn of(
        job: &Job,
        totals: &Totals,
        results: Option<Results>,
        finished_at: Timestamp,
        retention: Duration,
    ) -> Option<Self> {
        let end = job.end_of(totals.counts, results, finished_at, expiry(finished_at, retention))?;
        Some(Self { seen: job.clone(), end, usage: totals.usage })
    }

    /// The end of a job that is stopped before a function took it up. None if one has.
    pub fn of_untaken(job: &Job, stop: &Stop, retention: Duration) -> Option<Self> {
        let end = job.end_of_untaken(stop, expiry(stop.at, retention))?;
        Some(Self { seen: job.clone(), end, usage: Usage::NONE })
    }

    /// The job after the completion.
    pub fn job(&self) -> Job {
        Job { revision: self.seen.revision + 1, ..self.seen.ended(&self.end, self.usage) }
    }

    /// True if this completion already ended the job: it was applied earlier and its reply lost.
    pub fn has_ended(&self, job: &Job) -> bool {
        let of = |end: &End| (end.status(), end.finished_at, end.counts);
        (job.attempt, job.completions) == (self.seen.attempt, self.seen.completions + 1)
            && job.end().map(of) == Some(of(&self.end))
    }
}
