use std::ops::Range;

use async_trait::async_trait;
use jiff::Timestamp;

use super::job_writes::{
    CheckpointMoved, Committed, Completion, CreateError, Created, Due, JobFilter, JobPage, Leased, NewAttempt, NewJob,
    RedriveError, Stopped, WriteLost,
};
use crate::model::checkpoint::Checkpoint;
use crate::model::dead_letter::DeadLetter;
use crate::model::ids::{JobGuid, Owner, RunId};
use crate::model::job::{Job, Lease, Stop};
use crate::model::spec::Spec;
use crate::model::tally::{ChunkAddress, Commit, Tally, Totals};
use crate::ports::PortError;
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

    /// The owner's job of this name, as whoever asks for it over the API may see it.
    ///
    /// # Errors
    /// `NotFound` where there is none, it is another owner's, or it has expired by `now`.
    async fn owned(&self, owner: &Owner, job: JobGuid, now: Timestamp) -> Result<Job, PortError> {
        let job = self.job(job).await?;
        let expired = job.expires_at.is_some_and(|expires_at| expires_at <= now);
        if job.owner == *owner && !expired { Ok(job) } else { Err(PortError::NotFound) }
    }

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

    /// Puts a tally if it is absent. The tally that is there then: one put by another run of the split counts as it is.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn put_tally(&self, job: JobGuid, tally: &Tally) -> Result<Tally, PortError>;

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

    /// Notes that there will be no more tallies, and whether that is because all items are dispatched, and gives the lease
    /// back; on condition that this run holds it.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the job as it is.
    async fn finish_split(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        at_end: bool,
        now: Timestamp,
    ) -> Result<Job, WriteLost>;

    /// Notes under which name the state of a composition is stored, for the next invocation to go on from, and gives the
    /// lease back; on condition that this run holds it.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the job as it is.
    async fn pause_composition(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        state: RunId,
        now: Timestamp,
    ) -> Result<(), WriteLost>;

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

    /// The checkpoint of a chunk, if it has one.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn checkpoint(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError>;

    /// Moves a checkpoint on, to what `moved` says, on condition that it is one move behind that: at `rev - 1`, or absent where
    /// that is 0.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn move_checkpoint(&self, job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError>;

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

    /// The jobs of a shard (0 to [`WAKE_SHARDS`](super::WAKE_SHARDS), excluded) that are to be looked at by `now`,
    /// those due longest first, at most `limit`. Read from an index that may be behind:
    /// [`wake_later`](Self::wake_later) tells whether an entry still stands.
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
