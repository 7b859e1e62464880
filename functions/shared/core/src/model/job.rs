//! The job row: the small, often written part of a job. What never changes is its [`Spec`].

use std::time::Duration;

use jiff::Timestamp;
pub use rowmill_api::job::JobError;
pub use rowmill_api::status::StopCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::ids::{FileGuid, JobGuid, Owner, RunId};
use crate::model::records::RECORD_PARTITIONS;
use crate::model::results::Results;
use crate::model::spec::{Source, Spec};
use crate::model::states::{JobOutcome, Status, Transition};
use crate::model::tally::Counts;
use crate::text::Position;

/// A job as its row tells it.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// The job's name.
    pub job_guid: JobGuid,
    /// Whose job it is.
    pub owner: Owner,
    /// The name of its job type.
    pub job_type: String,
    /// The upload it runs over, if it runs over one.
    pub file_guid: Option<FileGuid>,
    /// Whether its chunks are objects rather than ranges of the upload, so that nobody knows how long its text is.
    pub is_stored: bool,
    /// Where the file's data begins, behind byte-order mark and header.
    pub data_start: u64,
    /// What 100 percent are: bytes of the file's data; of the whole upload where its chunks are objects; of a dataset its
    /// partitions.
    pub data_bytes: u64,
    /// What the client wants to find again.
    pub metadata: Option<Map<String, Value>>,

    /// Where it is in its life.
    pub status: Status,
    /// How a completed job went.
    pub outcome: Option<JobOutcome>,
    /// Which attempt runs, or ran last; counted from 1.
    pub attempt: u32,
    /// How far the split is.
    pub split: SplitState,
    /// Who works on the job row itself: a splitter, later a completion.
    pub lease: Option<Lease>,
    /// Why the job is not to go on, if so.
    pub stop: Option<Stop>,
    /// The counts at the end of the last attempt.
    pub counts: Option<Counts>,
    /// How many times a completion took effect; equals the attempts that have ended.
    pub completions: u32,
    /// What the present attempt does over, if it is not the first.
    pub redrive: Option<Redrive>,
    /// Where the results of the last attempt that ended are, if they could be composed.
    pub results: Option<Results>,
    /// Under which name the state of a composition that goes on in another invocation is stored.
    pub composing: Option<RunId>,
    /// How many recoveries in a row have brought no sign of life.
    pub recoveries: u32,

    /// When it was created.
    pub created_at: Timestamp,
    /// When it was first taken up.
    pub started_at: Option<Timestamp>,
    /// When its row last moved; the tallies have their own.
    pub moved_at: Timestamp,
    /// When it is stopped if it has not ended.
    pub deadline_at: Timestamp,
    /// When its last attempt ended.
    pub finished_at: Option<Timestamp>,
    /// When the sweep looks at it next; none once it has ended.
    pub wake_at: Option<Timestamp>,
    /// When it goes away; known once it has ended.
    pub expires_at: Option<Timestamp>,
}

impl Job {
    /// The job of this spec as it is created: nobody has taken it up yet.
    pub fn waiting(spec: &Spec, deadline_at: Timestamp, wake_at: Timestamp) -> Self {
        let data_start = spec.head.data_start;
        let data_bytes = match &spec.source {
            Source::File(file) => file.size.saturating_sub(data_start),
            Source::Packed { file, .. } => file.size,
            Source::Dataset { .. } => RECORD_PARTITIONS.into(),
        };
        Self {
            job_guid: spec.job_guid,
            owner: spec.owner.clone(),
            job_type: spec.job_type.clone(),
            file_guid: spec.source.file().map(|file| file.file_guid),
            is_stored: spec.source.is_stored(),
            data_start,
            data_bytes,
            metadata: None,
            status: Status::Waiting,
            outcome: None,
            attempt: 1,
            split: SplitState {
                tallies: 0,
                dispatched: 0,
                cursor: Position { offset: data_start, row: 1 },
                done: false,
                at_end: false,
            },
            lease: None,
            stop: None,
            counts: None,
            completions: 0,
            redrive: None,
            results: None,
            composing: None,
            recoveries: 0,
            created_at: spec.created_at,
            started_at: None,
            moved_at: spec.created_at,
            deadline_at,
            finished_at: None,
            wake_at: Some(wake_at),
            expires_at: None,
        }
    }

    /// How many items have been dispatched in this attempt.
    pub const fn items_dispatched(&self) -> u64 {
        self.split.cursor.row.saturating_sub(1)
    }

    /// The status that ends this job, by what stopped it or did not.
    pub const fn ending(&self) -> Option<Status> {
        let by = match (&self.stop, self.status) {
            (None, _) => Transition::Complete,
            (Some(_), Status::Cancelling) => Transition::EndCancelled,
            (Some(_), _) => Transition::Fail,
        };
        by.apply(self.status)
    }

    /// Where the file was not dispatched any further, if the split ended before the end of the file.
    pub fn unprocessed_from(&self) -> Option<Position> {
        match &self.redrive {
            Some(redrive) => redrive.unprocessed_from,
            None => {
                let cut_short = self.split.done && !self.split.at_end && self.stop.is_some();
                let end = match self.is_stored {
                    false => self.data_start.saturating_add(self.data_bytes),
                    true => u64::MAX,
                };
                Some(self.split.cursor).filter(|cursor| cut_short && cursor.offset < end)
            }
        }
    }

    /// The earliest attempt that has a say in which items have failed: the present one if it dispatched all its items, else
    /// the last one before it that did.
    pub fn failures_since(&self) -> u32 {
        match &self.redrive {
            None => 1,
            Some(redrive) if self.split.done && self.items_dispatched() == redrive.before.failed => self.attempt,
            Some(redrive) => redrive.base,
        }
    }

    /// The counts of the whole job, when those of the present attempt are these.
    pub fn merged(&self, attempt: Counts) -> Counts {
        self.redrive.as_ref().map_or(attempt, |redrive| redrive.merged(attempt))
    }

    /// What stopped the job, if it was an error and not its owner.
    pub fn error(&self) -> Option<JobError> {
        let stop = self.stop.as_ref().filter(|stop| stop.code != StopCode::Cancelled)?;
        let Stop { code, message, row, offset, .. } = stop;
        Some(JobError { code: (*code).into(), message: message.clone(), row: *row, offset: *offset })
    }

    /// Whether nothing of `attempt` is left to be done: the job has ended or goes by another attempt.
    pub const fn is_past(&self, attempt: u32) -> bool {
        self.attempt != attempt || self.status.is_terminal()
    }
}

/// What an attempt after the first does over: the items that had failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Redrive {
    /// The request it came from: a repeated write is known by it.
    pub by: RunId,
    /// The counts of the whole job before it. All that had failed are its items.
    pub before: Counts,
    /// The last attempt before it that dispatched all its items: what failed is told from there on.
    pub base: u32,
    /// Where the first attempt ended if it did not reach the end of the file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unprocessed_from: Option<Position>,
    /// The key of the rows that take the place of failed ones, if a corrected file was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub corrected: Option<String>,
}

impl Redrive {
    /// The counts of the whole job, when those of this attempt are these. An item keeps its last outcome until the attempt
    /// has another one for it, so the sum never moves; one that was skipped this time has failed before and still has.
    pub const fn merged(&self, attempt: Counts) -> Counts {
        Counts {
            succeeded: self.before.succeeded + attempt.succeeded,
            failed: self.before.failed.saturating_sub(attempt.succeeded),
            skipped: self.before.skipped,
        }
    }
}

/// How far the split of the current attempt is.
///
/// The first attempt cuts the file: `cursor` is a place in it. Each further one cuts the list of the items that failed:
/// `cursor.row` counts those dispatched (from 1, as rows are), `cursor.offset` is the row number of the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SplitState {
    /// How many tallies count; no message of any other tally was ever sent.
    pub tallies: u32,
    /// How many tallies are known to have had all their messages sent: `tallies`, or one less.
    pub dispatched: u32,
    /// The border after the last counted tally.
    pub cursor: Position,
    /// Whether there will be no more tallies.
    pub done: bool,
    /// Whether that is because all items are dispatched.
    pub at_end: bool,
}

/// The right to work on a job's row alone, until it runs out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The run that holds it.
    pub holder: RunId,
    /// When anybody may take it.
    pub until: Timestamp,
}

/// How much longer a lease lasts than the invocation that takes it can run. So no other run works on the job before that
/// invocation is over, even if the clocks of the two differ.
pub const LEASE_MARGIN: Duration = Duration::from_secs(20);

/// Why a job is not to go on. Set once and never changed within an attempt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stop {
    /// What happened.
    pub code: StopCode,
    /// What happened, for a person.
    pub message: String,
    /// The row it happened at, if it was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub row: Option<u64>,
    /// The byte of the file it happened at, if it was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<u64>,
    /// When it was set.
    pub at: Timestamp,
}

impl Stop {
    /// A stop that has to do with no particular row.
    pub fn because(code: StopCode, message: impl Into<String>, at: Timestamp) -> Self {
        Self { code, message: message.into(), row: None, offset: None, at }
    }

    /// The job's deadline has passed.
    pub fn deadline_exceeded(at: Timestamp) -> Self {
        Self::because(StopCode::DeadlineExceeded, "the job's deadline passed before all its items were processed", at)
    }

    /// More items failed than the job bears.
    pub fn tolerance_exceeded(counts: Counts, at: Timestamp) -> Self {
        let Counts { succeeded, failed, .. } = counts;
        let message = format!("{failed} of {} items failed, more than the job's tolerance", succeeded + failed);
        Self::because(StopCode::ToleranceExceeded, message, at)
    }

    /// The job's file is not the one any more that it was created on; `how` says how so, `place` where that was noticed.
    pub fn source_changed(how: &str, place: Option<Position>, at: Timestamp) -> Self {
        Self {
            code: StopCode::SourceChanged,
            message: format!(
                "the uploaded file {how} while the job was reading it; upload it again and create a new job"
            ),
            row: place.map(|place| place.row),
            offset: place.map(|place| place.offset),
            at,
        }
    }
}

/// How a job whose items ended like this went.
pub const fn outcome(counts: Counts) -> JobOutcome {
    match (counts.succeeded, counts.failed + counts.skipped) {
        (_, 0) => JobOutcome::Succeeded,
        (0, _) => JobOutcome::Failed,
        _ => JobOutcome::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_follows_from_the_counts() {
        let counts = |succeeded, failed, skipped| Counts { succeeded, failed, skipped };
        assert_eq!(outcome(counts(0, 0, 0)), JobOutcome::Succeeded, "an empty file is done well");
        assert_eq!(outcome(counts(3, 0, 0)), JobOutcome::Succeeded);
        assert_eq!(outcome(counts(3, 1, 0)), JobOutcome::Partial);
        assert_eq!(outcome(counts(0, 1, 0)), JobOutcome::Failed);
    }
}
