//! Why a job must stop.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::job::states::Phase;
use crate::model::job::{Job, StopCode};
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

    /// Its owner has paused it for longer than a pause may last.
    pub fn paused_too_long(longest: Duration, at: Timestamp) -> Self {
        let seconds = longest.as_secs();
        let message = format!(
            "the job was paused for longer than the {seconds} s that a pause may last, so it was stopped; redrive its failed \
             rows, or create a new job for the rest"
        );
        Self::because(StopCode::PausedTooLong, message, at)
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
    /// Stops it, and makes it due for the sweep at once. A stop for lack of capacity is only set if no chunk of the
    /// attempt has begun.
    pub fn stop(&self, stop: &Stop) -> Option<Self> {
        match &self.phase {
            // A stop ends a pause and a resend. Before its split begins, the splitter finds the stop and dispatches
            // nothing.
            Phase::Runnable | Phase::Paused(_) => {
                let has_begun = stop.code == StopCode::CapacityExceeded && self.first_chunk_at.is_some();
                (!has_begun).then(|| Self {
                    phase: Phase::Stopping(stop.clone()),
                    paused_at: None,
                    resend_from: None,
                    moved_at: stop.at,
                    wake_at: Some(stop.at),
                    recoveries: 0,
                    ..self.clone()
                })
            }
            // The first stop of an attempt stays.
            Phase::Stopping(_) | Phase::Ended(_) => (self.stopped_by() == Some(stop)).then(|| self.clone()),
        }
    }

    pub fn stop_overdue(&self, now: Timestamp) -> Option<Self> {
        // Its owner may have moved the deadline since the caller has looked.
        if now < self.deadline_at { None } else { self.stop(&Stop::overdue(self, now)) }
    }

    /// True if more items have failed than it tolerates. The items of a redrive had failed before.
    pub fn is_exceeded_by(&self, counts: Counts) -> bool {
        self.attempt == 1 && self.tolerance.is_some_and(|tolerance| counts.exceed(&tolerance))
    }

    /// Stops it if more items have failed than it tolerates: by now, not when the caller has looked.
    pub fn stop_exceeded(&self, counts: Counts, now: Timestamp) -> Option<Self> {
        if self.is_exceeded_by(counts) { self.stop(&Stop::tolerance_exceeded(counts, now)) } else { None }
    }

    /// The error that stopped the job; `None` if its owner cancelled it.
    pub fn error(&self) -> Option<&Stop> {
        self.stopped_by().filter(|stop| !stop.is_cancel())
    }
}
