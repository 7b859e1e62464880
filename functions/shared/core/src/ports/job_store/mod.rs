//! The job store: the rows of the jobs and the writes that move them, one trait per concern.
//!
//! | trait | methods |
//! |---|---|
//! | [`Admissions`] | `create`, `taken`, `remembered`, `deduped` |
//! | [`Jobs`] | `job`, `spec`, `jobs` |
//! | [`Updates`] | `update` |
//! | [`Tallies`] | `put_tally`, `tally`, `tallies`, `commit`, `skip_rest`, `touch`, `note_next_sent`, `fold`, `totals`, `set_final_tallies` |
//! | [`Checkpoints`] | `checkpoint`, `move_checkpoint` |
//! | [`Permits`] | `permits`, `lease_with_permit`, `give_permit_back` |
//! | [`Attempts`] | `redrive` |
//! | [`Completions`] | `complete` |
//! | [`DeadLetters`] | `record_dead_letter`, `dead_letters` |
//! | [`WakeUps`] | `due`, `put_off` |
//! | [`Erasures`] | `erase_rows` |
//! | [`Waits`] | `awaiting`, `put_found` |
//!
//! Each trait stands in one file with the types that it asks for and answers with. The adapters and the contract suite
//! have one file of the same name for each.

mod admissions;
mod attempts;
mod checkpoints;
mod completions;
mod dead_letters;
mod erasures;
mod jobs;
mod permits;
mod tallies;
mod updates;
mod waits;
mod wake_ups;
mod write_lost;

pub use admissions::{
    ActiveJobs, Admission, Admissions, Ceilings, CreateError, Created, Dedupe, ENDS_KEPT, Full, Idempotency, NewJob,
    SlotsTaken,
};
pub use attempts::{Attempts, NewAttempt, RedriveError};
pub use checkpoints::{CheckpointMoved, Checkpoints};
pub use completions::{Completion, Completions};
pub use dead_letters::DeadLetters;
pub use erasures::Erasures;
pub use jobs::{JobFilter, JobPage, Jobs, StateFilter};
pub use permits::Permits;
pub use tallies::{CommitAnswer, Tallies};
pub use updates::{UpdateAnswer, Updates};
pub use waits::{AWAITING_MAX, Waits};
pub use wake_ups::{Due, ERASE_SHARD, WAKE_SHARDS, WakeUps};
pub use write_lost::WriteLost;

use jiff::Timestamp;

use crate::model::ids::{JobGuid, Owner};
use crate::model::job::Job;
use crate::ports::PortError;

/// The whole job store.
///
/// Each method that writes is one conditional write, or one transaction if rows must move together. Reads are strongly
/// consistent, except [`Admissions::taken`] and the indexes behind [`Jobs::jobs`] and [`WakeUps::due`]. If a
/// condition fails, the answer carries the current row, and an earlier write of the caller whose reply was lost is
/// recognised: by the store, or by the caller in that row.
///
/// Every method fails with `Unavailable` if the store cannot be reached or keeps throttling. A write may then be
/// applied or not, and the caller should call again.
///
/// A type that implements all parts is a job store; this trait needs no implementation.
pub trait JobStore:
    Admissions
    + Jobs
    + Updates
    + Tallies
    + Checkpoints
    + Permits
    + Attempts
    + Completions
    + DeadLetters
    + WakeUps
    + Erasures
    + Waits
{
}

impl<S> JobStore for S where
    S: Admissions
        + Jobs
        + Updates
        + Tallies
        + Checkpoints
        + Permits
        + Attempts
        + Completions
        + DeadLetters
        + WakeUps
        + Erasures
        + Waits
{
}

impl dyn JobStore + '_ {
    /// Reads a job for its owner, as the API shows it.
    ///
    /// This is no method of a port, so no adapter and no wrapper has its own version of the rule.
    ///
    /// # Errors
    /// `NotFound` if the job does not exist, belongs to another owner, or is [gone](Job::is_gone) by `now`.
    pub async fn owned(&self, owner: &Owner, job: JobGuid, now: Timestamp) -> Result<Job, PortError> {
        let job = self.job(job).await?;
        if job.owner == *owner && !job.is_gone(now) { Ok(job) } else { Err(PortError::NotFound) }
    }
}
