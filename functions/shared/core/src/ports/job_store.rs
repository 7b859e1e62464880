use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::dead_letter::DeadLetter;
use crate::ids::{JobGuid, Owner, RunId};
use crate::job::{Job, Lease, Redrive, SplitState, Stop, outcome};
use crate::ledger::Ledger;
use crate::ports::{PortError, expiry};
use crate::spec::Spec;
use crate::states::{Move, Outcome, Status};
use crate::tally::{ChunkAddress, Commit, Counts, Tally, Totals};
use crate::text::Position;

/// The rows of the jobs, and the writes that move them.
///
/// Each method that writes is one conditional write, or one transaction where rows must move together. Reads are strongly
/// consistent. Where a condition did not hold, the answer carries the row as it was, so that the caller can recognise its
/// own earlier write whose reply was lost.
///
/// Every method fails with `Unavailable` when the store cannot be reached or keeps throttling; then the write may or may
/// not have been applied, and calling again is right.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Creates a job: its row, its spec, one slot each of its owner, its type and the system, and the memory of its
    /// idempotency key, all or nothing.
    ///
    /// # Errors
    /// Where a ceiling is reached, or the idempotency key was used for something else.
    async fn create(&self, job: &NewJob) -> Result<Created, CreateError>;

    /// The job that this idempotency key of the owner created, if it is still remembered at `now`, with the fingerprint
    /// of the request.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn remembered(
        &self,
        owner: &Owner,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<(JobGuid, String)>, PortError>;

    /// The job's row. Expired jobs are given too.
    ///
    /// # Errors
    /// `NotFound`.
    async fn job(&self, job: JobGuid) -> Result<Job, PortError>;

    /// The job's spec.
    ///
    /// # Errors
    /// `NotFound`.
    async fn spec(&self, job: JobGuid) -> Result<Spec, PortError>;

    /// The owner's jobs that have not expired by `now`, newest first.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn jobs(&self, owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError>;

    /// Takes the lease of an attempt that has not ended and whose lease is free or run out at `now`; a waiting job runs
    /// from then on.
    ///
    /// # Errors
    /// `NotFound`.
    async fn lease(&self, job: JobGuid, attempt: u32, lease: Lease, now: Timestamp) -> Result<Leased, PortError>;

    /// Gives the lease back, if this run still holds it.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn release(&self, job: JobGuid, holder: RunId) -> Result<(), PortError>;

    /// Puts a tally if it is absent. One that is there is the same one, put by another run of the split.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn put_tally(&self, job: JobGuid, tally: &Tally) -> Result<(), PortError>;

    /// Counts tally `number` in the job row, with the border after it, and notes that all tallies before it are
    /// dispatched; on condition that this run holds the lease, that exactly the tallies before it are counted, and that
    /// the job is neither stopped nor split to its end.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the job as it is.
    async fn count_tally(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        number: u32,
        next: Position,
        now: Timestamp,
    ) -> Result<(), WriteLost>;

    /// Notes that all counted tallies are dispatched and gives the lease back, for the next invocation to go on; on
    /// condition that this run holds it.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the job as it is.
    async fn pause_split(&self, job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<(), WriteLost>;

    /// Notes that there will be no more tallies and gives the lease back; on condition that this run holds it.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the job as it is.
    async fn finish_split(&self, job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<Job, WriteLost>;

    /// Stops an attempt that has not ended and is not stopped, and has the sweep look at the job from then on. Stopping it
    /// again with the very same stop is stopping it now: the first reply was lost.
    ///
    /// # Errors
    /// `NotFound`.
    async fn stop(&self, job: JobGuid, attempt: u32, stop: &Stop) -> Result<Stopped, PortError>;

    /// Notes in the totals how many tallies the attempt has. Noting it again changes nothing.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn set_final_tallies(&self, job: JobGuid, attempt: u32, tallies: u32) -> Result<Totals, PortError>;

    /// Commits a chunk on its tally, unless it is committed already or the tally was closed without it.
    ///
    /// # Errors
    /// `NotFound` where there is no such tally.
    async fn commit(&self, job: JobGuid, commit: &Commit) -> Result<Committed, PortError>;

    /// Closes a tally of a stopped job without its missing chunks: their items are skipped, and none of them can be
    /// committed any more. On condition that exactly the chunks of `seen` are committed; the tally as it is then, closed or
    /// not.
    ///
    /// # Errors
    /// `NotFound` where there is no such tally.
    async fn skip_rest(&self, job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError>;

    /// One tally.
    ///
    /// # Errors
    /// `NotFound`.
    async fn tally(&self, job: JobGuid, attempt: u32, number: u32) -> Result<Tally, PortError>;

    /// The tallies of these numbers that there are, in order.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn tallies(&self, job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError>;

    /// Adds a closed tally's counts to the totals, unless they are in already. The totals as they are then.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn fold(&self, job: JobGuid, tally: &Tally) -> Result<Totals, PortError>;

    /// The totals of an attempt; empty ones where nothing is noted yet.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn totals(&self, job: JobGuid, attempt: u32) -> Result<Totals, PortError>;

    /// Notes a sign of life on a tally, for work that takes long between commits. Where there is no such tally, nothing is
    /// noted.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn touch(&self, job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError>;

    /// The ledger of a chunk, if it has one.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn ledger(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Ledger>, PortError>;

    /// Moves a ledger on, to what `moved` says, on condition that it is one move behind that: at `rev - 1`, or absent where
    /// that is 0.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn move_ledger(&self, job: JobGuid, moved: &Ledger) -> Result<LedgerMoved, PortError>;

    /// Records a dead letter. Recording it again changes nothing.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn record_dead_letter(&self, job: JobGuid, letter: &DeadLetter) -> Result<(), PortError>;

    /// The dead letters of a job, at most `limit` of them, oldest first.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn dead_letters(&self, job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError>;

    /// The jobs of a shard (0 to [`WAKE_SHARDS`], excluded) that are to be looked at by `now`, those due longest first, at
    /// most `limit`. Read from an index that may be behind: [`wake_later`](Self::wake_later) tells whether an entry still
    /// stands.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<Due>, PortError>;

    /// Has a job looked at again at `next`, on condition that it is due when it was seen to be: of many sweeps, one claims
    /// it. The job as it is then, or none where the condition does not hold.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn wake_later(&self, due: Due, next: Timestamp, recoveries: u32) -> Result<Option<Job>, PortError>;

    /// Starts the next attempt of an ended job over its failed items: takes its slots, sets the split back and keeps the
    /// counts, all or nothing; on condition that its status and attempt are as seen. Doing it again with the very same
    /// redrive changes nothing and is no loss: the first reply was lost.
    ///
    /// # Errors
    /// [`RedriveError`]; nothing is written then.
    async fn redrive(&self, redrive: &NewAttempt) -> Result<Job, RedriveError>;

    /// Ends an attempt and gives its slots back, all or nothing; on condition that its status and stop are as seen. Doing
    /// it again with the very same completion changes nothing and is no loss: the first reply was lost.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the job as it is.
    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost>;
}

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
            status: self.seen.status.after(Move::Redrive).unwrap_or(self.seen.status),
            outcome: None,
            attempt: self.seen.attempt + 1,
            split: SplitState { tallies: 0, dispatched: 0, cursor: Position { offset: 0, row: 1 }, done: false },
            lease: None,
            stop: None,
            redrive: Some(self.redrive.clone()),
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

/// What became of moving a ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LedgerMoved {
    /// It is moved (just now, or earlier with the reply lost).
    Won,
    /// Another run has moved it. The ledger as it is.
    Lost(Ledger),
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
    pub outcome: Option<Outcome>,
    /// The counts it ends with.
    pub counts: Counts,
    /// When.
    pub finished_at: Timestamp,
    /// When its rows go away.
    pub expires_at: Timestamp,
}

impl Completion {
    /// The end of a job's attempt with these counts, by what stopped it or did not; none where it does not end from here.
    pub fn of(job: &Job, attempt: Counts, finished_at: Timestamp, retention: Duration) -> Option<Self> {
        let (status, counts) = (job.ending()?, job.merged(attempt));
        // A file of which a part was never dispatched has not succeeded, whatever became of the rest.
        let outcome = match (outcome(counts), job.unprocessed_from()) {
            (Outcome::Succeeded, Some(_)) => Outcome::Partial,
            (outcome, _) => outcome,
        };
        Some(Self {
            seen: job.clone(),
            status,
            outcome: (status == Status::Completed).then_some(outcome),
            counts,
            finished_at,
            expires_at: expiry(finished_at, retention),
        })
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
