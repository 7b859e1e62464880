use std::ops::Range;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::JobGuid;
use crate::model::tally::{Commit, Tally, Totals};
use crate::ports::PortError;

/// The tallies of a job and the totals of its attempts.
#[async_trait]
pub trait Tallies: Send + Sync {
    /// Puts a tally if it is absent. Returns the stored tally: one put by another run of the split counts unchanged.
    async fn put_tally(&self, job: JobGuid, tally: &Tally) -> Result<Tally, PortError>;

    /// Reads one tally.
    ///
    /// # Errors
    /// `NotFound`.
    async fn tally(&self, job: JobGuid, attempt: u32, number: u32) -> Result<Tally, PortError>;

    /// Reads the existing tallies in this range of numbers, in order.
    async fn tallies(&self, job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError>;

    /// Commits chunks of one tally, all of them in one write or none. Condition: none of them is committed, and the
    /// tally was not closed without them.
    ///
    /// # Errors
    /// `NotFound` if the tally does not exist; `Invalid` if there is none, or they are not different chunks of one
    /// tally.
    async fn commit(&self, job: JobGuid, commits: &[Commit]) -> Result<CommitAnswer, PortError>;

    /// Closes a tally of a stopped job without its missing chunks: their items count as skipped, and none of the chunks
    /// can be committed any more. Condition: exactly the chunks of `seen` are committed. Returns the current tally,
    /// closed or not.
    ///
    /// # Errors
    /// `NotFound` if the tally does not exist.
    async fn skip_rest(&self, job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError>;

    /// Notes a sign of life on a tally, for work that takes long between commits. Does nothing if the tally does not
    /// exist, or had a later one.
    async fn touch(&self, job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError>;

    /// Notes that the tally which waits for this one was sent. Does nothing if the tally does not exist.
    async fn note_next_sent(&self, job: JobGuid, attempt: u32, tally: u32) -> Result<(), PortError>;

    /// Adds the counts of a closed tally to the totals, unless they are already included. Returns the current totals.
    async fn fold(&self, job: JobGuid, tally: &Tally) -> Result<Totals, PortError>;

    /// Reads the totals of an attempt; empty totals before the first write.
    async fn totals(&self, job: JobGuid, attempt: u32) -> Result<Totals, PortError>;

    /// Writes the final number of tallies of the attempt into the totals. Idempotent.
    async fn set_final_tallies(&self, job: JobGuid, attempt: u32, tallies: u32) -> Result<Totals, PortError>;
}

/// The answer to a write that commits chunks, with the current tally.
#[derive(Clone, PartialEq, Debug)]
pub enum CommitAnswer {
    /// All of them are committed.
    Applied(Tally),
    /// None of them was committed by this write: at least one of them is accounted for.
    Refused(Tally),
}
