//! The phases of a job. Each transition between them is in the file of its name, with its reason.
//!
//! ```text
//! waiting ──► running ──► completed | failed
//!    │           │  paused ──► completed
//!    └──────────┴────┴──► cancelling ──► cancelled
//! waiting ──► cancelled | failed                     (nobody has taken it up; also out of a pause)
//! waiting | running ──► paused ──► waiting | running   (where it was paused)
//! completed | failed | cancelled ──► running        (redrive, the next attempt)
//! ```

pub use super::status::{JobOutcome, Status};
use super::{End, Job, Stop};
use crate::model::breaker::BreakerPause;

/// The phase of the current or last attempt. With `started_at` it tells the [`Status`].
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Phase {
    /// Nothing holds it back: it waits for a function to take it up, or runs.
    #[default]
    Runnable,
    /// No chunk may begin until it is resumed. Paused by the breaker of its job type for this reason, else by its
    /// owner, unless it was resumed and waits for slots.
    Paused(Option<BreakerPause>),
    /// The rest is skipped, then the attempt ends. The first stop of an attempt stays.
    Stopping(Stop),
    Ended(End),
}

impl Job {
    /// The status as clients see it. A job that an error stops shows the status that it had.
    pub const fn status(&self) -> Status {
        match (&self.phase, self.started_at) {
            (Phase::Stopping(stop), _) if stop.is_cancel() => Status::Cancelling,
            (Phase::Runnable | Phase::Stopping(_), None) => Status::Waiting,
            (Phase::Runnable | Phase::Stopping(_), Some(_)) => Status::Running,
            (Phase::Paused(_), _) => Status::Paused,
            (Phase::Ended(end), _) => end.status(),
        }
    }

    /// The end of its last attempt, unless another one has begun.
    pub const fn end(&self) -> Option<&End> {
        match &self.phase {
            Phase::Ended(end) => Some(end),
            Phase::Runnable | Phase::Paused(_) | Phase::Stopping(_) => None,
        }
    }

    pub const fn is_ended(&self) -> bool {
        self.end().is_some()
    }

    /// Why it must stop, or was stopped.
    pub const fn stopped_by(&self) -> Option<&Stop> {
        match &self.phase {
            Phase::Stopping(stop) | Phase::Ended(End { outcome: Err(stop), .. }) => Some(stop),
            Phase::Runnable | Phase::Paused(_) | Phase::Ended(_) => None,
        }
    }

    pub const fn is_stopped(&self) -> bool {
        self.stopped_by().is_some()
    }

    /// True if it neither has ended nor is being stopped: it runs, or can be resumed.
    pub const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Runnable | Phase::Paused(_))
    }

    /// True if no work is left in `attempt`: the job has ended or is in another attempt.
    pub const fn is_past(&self, attempt: u32) -> bool {
        self.attempt != attempt || self.is_ended()
    }

    /// True if no function has ever taken it up, and it is not stopped: nothing of it was dispatched, and no run is at
    /// work.
    pub const fn is_untaken(&self) -> bool {
        self.started_at.is_none() && self.is_open()
    }

    /// True if no chunk may begin until it is resumed.
    pub const fn is_paused(&self) -> bool {
        matches!(self.phase, Phase::Paused(_))
    }

    pub const fn is_paused_by_owner(&self) -> bool {
        matches!(self.phase, Phase::Paused(None)) && !self.awaits_slots()
    }

    /// Why the breaker of its job type has paused it, if it has.
    pub const fn breaker_pause(&self) -> Option<&BreakerPause> {
        match &self.phase {
            Phase::Paused(pause) => pause.as_ref(),
            Phase::Runnable | Phase::Stopping(_) | Phase::Ended(_) => None,
        }
    }
}
