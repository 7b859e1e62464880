//! Why an attempt must stop, and how it ended.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::status::{JobOutcome, Status};
use super::{Job, StopCode};
use crate::model::results::Results;
use crate::model::tally::Counts;
use crate::text::Position;

/// Why a job must stop. Set once and never changed within an attempt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stop {
    pub code: StopCode,
    /// Description of the event, in words for a person.
    pub message: String,
    /// The row that caused it, if one did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub row: Option<u64>,
    /// The byte offset in the file where it happened, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<u64>,
    pub at: Timestamp,
}

impl Stop {
    /// A stop that no particular row caused.
    pub fn because(code: StopCode, message: impl Into<String>, at: Timestamp) -> Self {
        Self { code, message: message.into(), row: None, offset: None, at }
    }

    /// True if its owner cancelled it. All other stops are errors.
    pub const fn is_cancel(&self) -> bool {
        matches!(self.code, StopCode::Cancelled)
    }

    pub fn deadline_exceeded(at: Timestamp) -> Self {
        Self::because(StopCode::DeadlineExceeded, "the job's deadline passed before all its items were processed", at)
    }

    /// The deadline of this job has passed, or it has waited for as long as it may. If none of its chunks has begun, it
    /// lacked capacity and not time.
    pub fn overdue(job: &Job, at: Timestamp) -> Self {
        match job.first_chunk_at {
            _ if job.awaits.is_some() => {
                let message = "the file or the job that it waited for was not there in time; try again later, or with a \
                               longer deadline";
                Self::because(StopCode::DeadlineExceeded, message, at)
            }
            Some(_) => Self::deadline_exceeded(at),
            None if at < job.deadline_at => {
                let message = "no row of the job was processed within its `startWithinSeconds`: the system or its workers \
                               were busy with other jobs, no worker came, or the job was held back; try again later";
                Self::because(StopCode::CapacityExceeded, message, at)
            }
            None => {
                let message = "the job's deadline passed before a row of this attempt was processed: the system was busy \
                               with other jobs, or the job was held back; try again later, or with a longer deadline";
                Self::because(StopCode::CapacityExceeded, message, at)
            }
        }
    }

    /// More items failed than the job's tolerance allows.
    pub fn tolerance_exceeded(counts: Counts, at: Timestamp) -> Self {
        let Counts { succeeded, failed, .. } = counts;
        let message = format!("{failed} of {} items failed, more than the job's tolerance allows", succeeded + failed);
        Self::because(StopCode::ToleranceExceeded, message, at)
    }

    /// The item of this row held its thread for longer than this.
    pub fn item_timeout(row: u64, timeout: Duration, at: Timestamp) -> Self {
        let seconds = timeout.as_secs();
        let message = format!(
            "processing row {row} took longer than the {seconds} s that an item may compute without interruption; \
             simplify the schema's references and patterns, or remove or shorten the row, and create a new job"
        );
        Self { row: Some(row), ..Self::because(StopCode::ItemTimeout, message, at) }
    }

    /// The job's file changed after the job was created. `how` says how, `place` where it was noticed.
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

#[derive(Clone, PartialEq, Debug)]
pub struct End {
    /// The outcome of a completed job, or why it was stopped.
    pub outcome: Result<JobOutcome, Stop>,
    /// The counts of the whole job.
    pub counts: Counts,
    /// The location of the results, if they could be composed.
    pub results: Option<Results>,
    pub finished_at: Timestamp,
    /// When the job row expires.
    pub expires_at: Timestamp,
}

impl End {
    pub const fn status(&self) -> Status {
        match &self.outcome {
            Ok(_) => Status::Completed,
            Err(stop) if stop.is_cancel() => Status::Cancelled,
            Err(_) => Status::Failed,
        }
    }

    pub fn retention(&self) -> SignedDuration {
        self.expires_at.duration_since(self.finished_at)
    }
}
