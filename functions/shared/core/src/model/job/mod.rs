//! The job row: the small part of a job that is written often. The part that never changes is its [`Spec`].
//!
//! A *transition* is a pure function from a job to the next one, or to nothing if it does not start from that job. What
//! a transition answers is written by [`Updates::update`](crate::ports::Updates), if nobody else has written the row.

mod awaits;
mod claim;
mod delete;
mod end;
mod ending;
#[cfg(test)]
mod job_tests;
mod lease;
mod pause;
mod redrive;
mod retune;
#[cfg(test)]
mod retune_tests;
mod slots;
mod split;
pub mod states;
mod status;
mod stop;
mod undo;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::model::cost::Usage;
use crate::model::ids::{FileGuid, JobGuid, Owner, RunId};
use crate::model::job::states::Phase;
use crate::model::records::DATASET_WEIGHT;
use crate::model::spec::{Source, Spec, Tolerance};
use crate::model::warnings::{self, Warning};
use crate::text::Position;
pub use awaits::Awaits;
pub use end::outcome;
pub use ending::{End, Stop};
pub use lease::{LEASE_MARGIN, Lease};
pub use pause::{REQUEST_LIMIT, Resent};
pub use redrive::Redrive;
pub use retune::Tuning;
pub use slots::SharedSlots;
pub use split::SplitState;
pub use status::{Priority, StopCode};

/// Retention of the rows other than the job row, from the job's creation: longer than any job row. The job row expires
/// with the job's own retention. The others follow later, and nobody can reach them in between.
pub const DETAILS_KEPT: SignedDuration = SignedDuration::from_hours(400 * 24);

/// When the rows of a job that are not its job row expire. If its name does not tell, they are kept.
pub fn details_until(job: JobGuid) -> Timestamp {
    created_at(job).and_then(|created| created.checked_add(DETAILS_KEPT).ok()).unwrap_or(Timestamp::MAX)
}

/// When the name of a job was drawn.
pub fn created_at(job: JobGuid) -> Option<Timestamp> {
    let (seconds, _) = job.0.get_timestamp()?.to_unix();
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

/// A job, as stored in its row.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    pub job_guid: JobGuid,
    pub owner: Owner,
    pub job_type: String,
    /// The upload that is the job's input, if its input is an upload.
    pub file_guid: Option<FileGuid>,
    /// True if its chunks are stored objects, not ranges of the upload. The length of its text is then unknown.
    pub is_stored: bool,
    /// Number of its files, if it reads many and they are listed.
    pub files: Option<u64>,
    /// Where the file's data begins, after the byte-order mark and the header.
    pub data_start: u64,
    /// The measure of 100 percent: the bytes of the file's data, the bytes of the whole upload if its chunks are stored
    /// objects, or the number of partitions of a dataset.
    pub data_bytes: u64,
    /// Warnings for the owner about the file. One of each kind; those found while the file is split come later.
    pub warnings: Vec<Warning>,
    /// Failed items before it is stopped. A redrive tolerates any number.
    pub tolerance: Option<Tolerance>,
    /// Maximum number of its chunks in flight.
    pub max_concurrency: Option<u32>,
    /// Its priority: which queues carry its messages.
    pub priority: Priority,
    /// Number of tallies that may be sent before the first of them is half done: the chunks of tally n are sent once
    /// half of the chunks of tally n − this are committed. So a job fills no queue that other jobs wait in. `None` for
    /// a job that is bounded by `maxConcurrency`.
    pub tallies_ahead: Option<u32>,
    /// The client's own metadata, returned with the job.
    pub metadata: Option<Map<String, Value>>,

    pub phase: Phase,
    /// What its first attempt waits for. It is not split before.
    pub awaits: Option<Awaits>,
    /// The current or last attempt, counted from 1.
    pub attempt: u32,
    pub split: SplitState,
    /// Which run works on the job row itself: a splitter, later a completer.
    pub lease: Option<Lease>,
    /// Usage over all attempts, apart from the tallies of the current one.
    pub usage: Usage,
    /// Number of completions that took effect; equals the number of ended attempts.
    pub completions: u32,
    /// The redrive that the current attempt is; `None` in the first attempt.
    pub redrive: Option<Redrive>,
    /// The job that undoes it. It gets no further attempt.
    pub undone_by: Option<JobGuid>,
    /// For how long it is kept after its end, if its owner wants it gone sooner than others.
    pub keep_seconds: Option<u64>,
    /// When it was deleted. Nobody sees it since, and its rows and objects are erased.
    pub deleted_at: Option<Timestamp>,
    /// The stored state of a composition that continues in another invocation, by name.
    pub composing: Option<RunId>,
    /// Number of recoveries in a row without a sign of life.
    pub recoveries: u32,
    /// When its last pause began, until its missing chunks begin to be sent again: runs from before may be at work. The
    /// pause takes effect within [`REQUEST_LIMIT`] of this time.
    pub paused_at: Option<Timestamp>,
    /// Counts its pauses and resumes over all attempts, and its start if it has waited. Messages of an earlier epoch are
    /// dropped where they could do harm.
    pub epoch: u32,
    /// The tally whose chunks are sent again since it was resumed; those of later ones are not yet. `None` if all are.
    pub resend_from: Option<u32>,
    pub slots: SharedSlots,

    pub created_at: Timestamp,
    /// When its current or last attempt began: its creation or the redrive. `deadlineSeconds` counts from here.
    pub attempt_at: Timestamp,
    /// When a function first started to work on it.
    pub started_at: Option<Timestamp>,
    /// When a run first took up a chunk of the current or last attempt.
    pub first_chunk_at: Option<Timestamp>,
    /// When its row last moved; each tally has its own time.
    pub moved_at: Timestamp,
    /// Its deadline: when it is stopped if it has not ended.
    pub deadline_at: Timestamp,
    /// When it is stopped if no chunk of its first attempt has begun; `None` if it may wait until its deadline.
    pub start_by: Option<Timestamp>,
    /// When the sweep looks at it next; `None` after it has ended. If it is to be erased, when that is due.
    pub wake_at: Option<Timestamp>,
    /// Number of writes of its row. It is never reset.
    pub revision: u64,
}

/// The measure of 100 percent of a job of this spec.
const fn data_bytes(spec: &Spec) -> u64 {
    match &spec.source {
        Source::File(file) => file.size.saturating_sub(spec.head.data_start),
        Source::Packed { file, .. } => file.size,
        Source::Dataset { .. } => DATASET_WEIGHT,
        Source::Files(files) => files.bytes,
        Source::Awaited(_) => 0,
    }
}

impl Job {
    /// A new job of this spec, which no function has worked on.
    pub fn waiting(spec: &Spec, deadline_at: Timestamp, wake_at: Timestamp) -> Self {
        let (data_start, data_bytes) = (spec.head.data_start, data_bytes(spec));
        Self {
            job_guid: spec.job_guid,
            owner: spec.owner.clone(),
            job_type: spec.job_type.clone(),
            file_guid: spec.source.upload(),
            is_stored: spec.source.is_stored(),
            files: spec.source.files(),
            data_start,
            data_bytes,
            warnings: warnings::of_columns(&spec.head),
            tolerance: None,
            max_concurrency: spec.max_concurrency,
            priority: Priority::Normal,
            tallies_ahead: None,
            metadata: None,
            phase: Phase::Runnable,
            awaits: None,
            attempt: 1,
            split: SplitState::from(data_start),
            lease: None,
            usage: Usage::NONE,
            completions: 0,
            redrive: None,
            undone_by: None,
            keep_seconds: None,
            deleted_at: None,
            composing: None,
            recoveries: 0,
            paused_at: None,
            epoch: 0,
            resend_from: None,
            slots: SharedSlots::Held,
            created_at: spec.created_at,
            attempt_at: spec.created_at,
            started_at: None,
            first_chunk_at: None,
            moved_at: spec.created_at,
            deadline_at,
            start_by: None,
            wake_at: Some(wake_at),
            revision: 0,
        }
    }

    /// Number of items dispatched in this attempt.
    pub const fn items_dispatched(&self) -> u64 {
        self.split.cursor.row.saturating_sub(1)
    }

    /// The tally for which this one waits, if it waits for one.
    pub fn awaited_tally(&self, number: u32) -> Option<u32> {
        self.tallies_ahead.and_then(|ahead| number.checked_sub(ahead.max(1)))
    }

    /// The tally that waits for this one.
    pub fn waiting_tally(&self, number: u32) -> Option<u32> {
        self.tallies_ahead.and_then(|ahead| number.checked_add(ahead.max(1)))
    }

    /// Where the undispatched rest of the file begins, if the split ended before the end of the file.
    pub fn unprocessed_from(&self) -> Option<Position> {
        match &self.redrive {
            Some(redrive) => redrive.unprocessed_from,
            None => {
                let cut_short = self.split.done && !self.split.at_end && self.is_stopped();
                let end = match self.is_stored {
                    false => self.data_start.saturating_add(self.data_bytes),
                    true => u64::MAX,
                };
                Some(self.split.cursor).filter(|cursor| cut_short && cursor.offset < end)
            }
        }
    }
}
