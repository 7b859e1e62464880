use async_trait::async_trait;
use jiff::Timestamp;

use super::write_lost::WriteLost;
use crate::model::ids::{JobGuid, RunId};
use crate::model::job::{Job, JobWarning};
use crate::text::Position;

/// The progress of a split in the job row. All writes need the lease.
#[async_trait]
pub trait Splits: Send + Sync {
    /// Counts tally `number` in the job row, sets the cursor to the border after it (`next`), and notes that all tallies
    /// before it are dispatched.
    ///
    /// Conditions: this run holds the lease, exactly the tallies before `number` are counted, and the job is neither
    /// paused nor stopped nor split to its end.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the current job.
    async fn count_tally(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        number: u32,
        next: Position,
        now: Timestamp,
    ) -> Result<(), WriteLost>;

    /// Replaces the warnings of the job. Condition: this run holds the lease.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the current job.
    async fn warn(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        warnings: &[JobWarning],
        now: Timestamp,
    ) -> Result<(), WriteLost>;

    /// Notes that all counted tallies are dispatched and gives the lease back, so that the next invocation can continue.
    /// Condition: this run holds the lease.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the current job.
    async fn pause_split(&self, job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<(), WriteLost>;

    /// Notes that no more tallies follow and gives the lease back. `at_end`: the reason is that all items are dispatched.
    /// Condition: this run holds the lease.
    ///
    /// # Errors
    /// [`WriteLost::Condition`] with the current job.
    async fn finish_split(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        at_end: bool,
        now: Timestamp,
    ) -> Result<Job, WriteLost>;
}
