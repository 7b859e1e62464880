//! What the job store is asked to write, and what becomes of it.

use std::time::Duration;

use jiff::Timestamp;

use crate::model::checkpoint::Checkpoint;
use crate::model::ids::JobGuid;
use crate::model::job::{Job, Redrive, SplitState, outcome};
use crate::model::results::Results;
use crate::model::spec::Spec;
use crate::model::states::{JobOutcome, Status, Transition};
use crate::model::tally::{Counts, Tally};
use crate::ports::{PortError, expiry};
use crate::text::Position;

/// Everything a new job consists of.
#[derive(Clone, PartialEq, Debug)]
pub struct NewJob {
    /// Its row.
    pub job: Job,
    /// Its spec.
    pub spec: Spec,
    /// The slots it takes.
    pub ceilings: Ceilings,
    /// What makes a repeated request find this job, if the client asked for that.
    pub idempotency: Option<Idempotency>,
}

/// How many jobs may be active (not ended) at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ceilings {
    /// Of one owner.
    pub owner: u32,
    /// Of one job type.
    pub job_type: u32,
    /// Altogether.
    pub system: u32,
}

/// The memory of a request that may be repeated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Idempotency {
    /// The client's key.
    pub key: String,
    /// A digest of what was asked for under it.
    pub fingerprint: String,
    /// Until when a repetition is recognised.
    pub expires_at: Timestamp,
}

/// What a creation did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    /// The job is there now.
    New,
    /// A request with the same idempotency key and payload had created this one before; nothing was written.
    Before(JobGuid),
}

/// Which ceiling is reached, and how fast slots under it become free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Full {
    /// The ceiling.
    pub admission: Admission,
    /// When the last jobs under it ended, up to [`ENDS_KEPT`], in any order.
    pub recent_ends: Vec<Timestamp>,
}

/// How many ends of jobs are remembered under each ceiling.
pub const ENDS_KEPT: usize = 8;

impl Full {
    /// After how many seconds a slot can be expected: the mean time between the last ends, the time since the last one
    /// included, so that it grows while nothing ends. `unknown` where no two ends are remembered; at least 1, at most
    /// `longest`.
    pub fn retry_after_seconds(&self, now: Timestamp, unknown: u64, longest: u64) -> u64 {
        let oldest = self.recent_ends.iter().min();
        let (Some(oldest), true) = (oldest, self.recent_ends.len() > 1) else { return unknown };
        let ms = now.duration_since(*oldest).as_millis().max(0);
        let interval = ms / i128::try_from(self.recent_ends.len() - 1).unwrap_or(1);
        u64::try_from((interval + 999) / 1000).unwrap_or(longest).clamp(1, longest)
    }
}

/// Which ceiling is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The owner has as many active jobs as an owner may have.
    OwnerFull,
    /// There are as many active jobs of the type as there may be.
    TypeFull,
    /// There are as many active jobs as there may be.
    SystemFull,
}

impl Admission {
    /// What is full and what to do, for the client.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::OwnerFull => "you have as many active jobs as you may have; try again when one has ended",
            Self::TypeFull => "there are as many active jobs of this type as there may be; try again later",
            Self::SystemFull => "there are as many active jobs as there may be; try again later",
        }
    }
}

/// Why no job was created. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// A ceiling is reached: try again when a job has ended.
    #[error("a ceiling of active jobs is reached: {:?}", .0.admission)]
    Full(Full),
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// The store cannot do it now.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// The next attempt of a job that has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct NewAttempt {
    /// The job as seen, whose status and attempt must still be these.
    pub seen: Job,
    /// What the attempt does over.
    pub redrive: Redrive,
    /// The slots it takes.
    pub ceilings: Ceilings,
    /// When.
    pub at: Timestamp,
    /// When it is stopped if it has not ended.
    pub deadline_at: Timestamp,
    /// When the sweep looks at it.
    pub wake_at: Timestamp,
}

impl NewAttempt {
    /// The job as it is from then on.
    pub fn job(&self) -> Job {
        Job {
            status: Transition::Redrive.apply(self.seen.status).unwrap_or(self.seen.status),
            outcome: None,
            attempt: self.seen.attempt + 1,
            split: SplitState {
                tallies: 0,
                dispatched: 0,
                cursor: Position { offset: 0, row: 1 },
                done: false,
                at_end: false,
            },
            lease: None,
            stop: None,
            redrive: Some(self.redrive.clone()),
            composing: None,
            recoveries: 0,
            moved_at: self.at,
            deadline_at: self.deadline_at,
            finished_at: None,
            wake_at: Some(self.wake_at),
            expires_at: None,
            ..self.seen.clone()
        }
    }

    /// Whether this very redrive made the job what it is: it was applied earlier, and its reply lost.
    pub fn was_applied(&self, job: &Job) -> bool {
        job.attempt == self.seen.attempt + 1
            && job.redrive.as_ref().is_some_and(|redrive| redrive.by == self.redrive.by)
    }
}

/// Why no attempt was started. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum RedriveError {
    /// A ceiling is reached: try again when a job has ended.
    #[error("a ceiling of active jobs is reached: {:?}", .0.admission)]
    Full(Full),
    /// The job is not any more what it was seen to be. The job as it is.
    #[error("the job moved on meanwhile")]
    Moved(Box<Job>),
    /// The store cannot do it now.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// A job that is to be looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// Which job.
    pub job: JobGuid,
    /// Since when.
    pub at: Timestamp,
}

/// How many shards the jobs to be looked at are spread over, so that no partition takes them all.
pub const WAKE_SHARDS: u32 = 8;

/// What became of moving a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CheckpointMoved {
    /// It is moved (just now, or earlier with the reply lost).
    Won,
    /// Another run has moved it. The checkpoint as it is.
    Lost(Checkpoint),
}

/// Which of the owner's jobs to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFilter {
    /// Only of this status.
    pub status: Option<Status>,
    /// Only of this type.
    pub job_type: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Only those created before this one.
    pub after: Option<JobGuid>,
}

/// A page of an owner's jobs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobPage {
    /// The jobs, newest first.
    pub jobs: Vec<Job>,
    /// Where the next page goes on; none where this is the last.
    pub next: Option<JobGuid>,
}

/// What became of taking a lease.
#[derive(Clone, PartialEq, Debug)]
pub enum Leased {
    /// This run holds it. The job as it is now.
    Taken(Job),
    /// Somebody else holds it, or the attempt is past. The job as it is.
    Refused(Job),
}

/// What became of stopping a job. The job as it is now.
#[derive(Clone, PartialEq, Debug)]
pub enum Stopped {
    /// It is stopped for this reason.
    Now(Job),
    /// It was stopped before, has ended, or goes by another attempt.
    Not(Job),
}

impl Stopped {
    /// The job, if it is still this attempt of it that was to be stopped, and has not ended.
    pub fn of_attempt(self, attempt: u32) -> Option<Job> {
        let (Self::Now(job) | Self::Not(job)) = self;
        (!job.is_past(attempt)).then_some(job)
    }
}

/// What became of a commit. The tally as it is now.
#[derive(Clone, PartialEq, Debug)]
pub enum Committed {
    /// This run's commit counts (just now, or earlier with its reply lost).
    Won(Tally),
    /// The chunk had been committed by another run.
    Lost(Tally),
}

impl Committed {
    /// The tally as it is now.
    pub const fn tally(&self) -> &Tally {
        match self {
            Self::Won(tally) | Self::Lost(tally) => tally,
        }
    }
}

/// The end of an attempt.
#[derive(Clone, PartialEq, Debug)]
pub struct Completion {
    /// The job as seen, whose status, attempt and stop must still be these.
    pub seen: Job,
    /// The status it ends in.
    pub status: Status,
    /// How it went, where it completed.
    pub outcome: Option<JobOutcome>,
    /// The counts it ends with.
    pub counts: Counts,
    /// Where its results are, if they could be composed.
    pub results: Option<Results>,
    /// When.
    pub finished_at: Timestamp,
    /// When its rows go away.
    pub expires_at: Timestamp,
}

impl Completion {
    /// The end of a job's attempt with these counts, by what stopped it or did not; none where it does not end from here.
    pub fn of(
        job: &Job,
        attempt: Counts,
        results: Option<Results>,
        finished_at: Timestamp,
        retention: Duration,
    ) -> Option<Self> {
        let (status, counts) = (job.ending()?, job.merged(attempt));
        // A file of which a part was never dispatched has not succeeded, whatever became of the rest.
        let outcome = match (outcome(counts), job.unprocessed_from()) {
            (JobOutcome::Succeeded, Some(_)) => JobOutcome::Partial,
            (outcome, _) => outcome,
        };
        Some(Self {
            seen: job.clone(),
            status,
            outcome: (status == Status::Completed).then_some(outcome),
            counts,
            results,
            finished_at,
            expires_at: expiry(finished_at, retention),
        })
    }

    /// The job as it is from then on.
    pub fn job(&self) -> Job {
        Job {
            status: self.status,
            outcome: self.outcome,
            counts: Some(self.counts),
            results: self.results,
            completions: self.seen.completions + 1,
            composing: None,
            lease: None,
            finished_at: Some(self.finished_at),
            moved_at: self.finished_at,
            wake_at: None,
            expires_at: Some(self.expires_at),
            ..self.seen.clone()
        }
    }

    /// Whether the job has ended by this very completion: it was applied earlier, and its reply lost.
    pub fn has_ended(&self, job: &Job) -> bool {
        (job.status, job.attempt, job.completions) == (self.status, self.seen.attempt, self.seen.completions + 1)
            && (job.finished_at, job.counts) == (Some(self.finished_at), Some(self.counts))
    }
}

/// Why a conditional write was not applied.
#[derive(Debug, thiserror::Error)]
pub enum WriteLost {
    /// Its condition did not hold. The job as it is.
    #[error("the job moved on meanwhile")]
    Condition(Box<Job>),
    /// The store cannot do it now.
    #[error(transparent)]
    Port(#[from] PortError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_can_be_expected_as_often_as_jobs_have_been_ending() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let full = |ends: &[i64]| Full {
            admission: Admission::SystemFull,
            recent_ends: ends.iter().map(|second| at(*second)).collect(),
        };
        assert_eq!(full(&[]).retry_after_seconds(at(100), 30, 300), 30, "nobody knows");
        assert_eq!(full(&[99]).retry_after_seconds(at(100), 30, 300), 30);
        assert_eq!(full(&[90, 80, 70]).retry_after_seconds(at(90), 30, 300), 10);
        assert_eq!(full(&[90, 80, 70]).retry_after_seconds(at(150), 30, 300), 40, "it has been quiet since");
        assert_eq!(full(&[90, 90, 90]).retry_after_seconds(at(90), 30, 300), 1);
        assert_eq!(full(&[1, 2]).retry_after_seconds(at(90_000), 30, 300), 300);
    }
}
