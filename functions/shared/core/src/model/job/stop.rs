//! Why a job must stop.

use std::time::Duration;

use jiff::Timestamp;
use rowmill_api::status::StopCode;
use serde::{Deserialize, Serialize};

use crate::model::job::Job;
use crate::model::job::states::Transition;
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

    pub fn deadline_exceeded(at: Timestamp) -> Self {
        Self::because(StopCode::DeadlineExceeded, "the job's deadline passed before all its items were processed", at)
    }

    /// The deadline of this job has passed. If none of its chunks has begun, it lacked capacity and not time.
    pub fn overdue(job: &Job, at: Timestamp) -> Self {
        match job.first_chunk_at {
            Some(_) => Self::deadline_exceeded(at),
            None => {
                let message = "the job's deadline passed before any of its rows was processed; the system was busy with \
                               other jobs, so try again later, or with a longer deadline";
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

impl Job {
    /// Stops it. A stop ends a pause and a resend, and makes the job due for the sweep at once. The first stop of an attempt
    /// stays; a stop for lack of capacity is only set if no chunk of the attempt has begun.
    pub fn stop(&self, stop: &Stop) -> Option<Self> {
        if self.stop.as_ref() == Some(stop) {
            return Some(self.clone());
        }
        let has_begun = stop.code == StopCode::CapacityExceeded && self.first_chunk_at.is_some();
        if self.status.is_terminal() || self.stop.is_some() || has_begun {
            return None;
        }
        let job = Self { paused_at: None, resend_from: None, ..self.out_of_pause() };
        let status = match stop.code {
            StopCode::Cancelled => Transition::Cancel.apply(job.status).unwrap_or(job.status),
            _ => job.status,
        };
        Some(Self { status, stop: Some(stop.clone()), moved_at: stop.at, wake_at: Some(stop.at), ..job })
    }
}
