use std::ops::Range;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::ids::{JobGuid, Owner, RunId};
use crate::job::{Job, Lease, Stop};
use crate::ports::PortError;
use crate::spec::Spec;
use crate::states::{Outcome, Status};
use crate::tally::{Commit, Counts, Tally, Totals};
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

    /// Stops an attempt that has not ended and is not stopped. Stopping it again with the very same stop is stopping it
    /// now: the first reply was lost.
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

/// Why no job was created. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// A ceiling is reached: try again when a job has ended.
    #[error("a ceiling of active jobs is reached: {0:?}")]
    Full(Admission),
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// The store cannot do it now.
    #[error(transparent)]
    Port(#[from] PortError),
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
