//! A stop: the rest of the attempt is skipped.

use jiff::Timestamp;

use super::states::Phase;
use super::{Job, Stop, StopCode};
use crate::model::tally::Counts;

impl Job {
    /// Stops it, and makes it due for the sweep at once. A stop for lack of capacity is only set if no chunk of the
    /// attempt has begun.
    pub fn stop(&self, stop: &Stop) -> Option<Self> {
        match &self.phase {
            // A stop ends a pause and a resend. A splitter that finds it first dispatches nothing.
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

    /// When it is stopped: at its deadline, or sooner if it has waited for as long as it may.
    pub fn stops_at(&self) -> Timestamp {
        let start_by = self.start_by.filter(|_| self.first_chunk_at.is_none());
        start_by.map_or(self.deadline_at, |by| by.min(self.deadline_at))
    }

    pub fn stop_overdue(&self, now: Timestamp) -> Option<Self> {
        // A chunk may have begun, or its owner have moved the deadline, since the caller has looked.
        if now < self.stops_at() { None } else { self.stop(&Stop::overdue(self, now)) }
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
