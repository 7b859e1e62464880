//! The claim of a sweep, and the start of the first chunk.

use jiff::Timestamp;

use super::Job;
use super::states::Phase;

impl Job {
    /// Claims it for one sweep: it is due again at `next`. Of many sweeps that saw the same `due_at`, one claims it.
    pub fn claim(&self, due_at: Timestamp, next: Timestamp, recoveries: u32) -> Option<Self> {
        let is_due = self.wake_at == Some(due_at);
        is_due.then(|| Self { wake_at: Some(next), recoveries, ..self.clone() })
    }

    /// This time, or when it is stopped if that comes first: the sweep looks at it in time.
    pub fn before_deadline(&self, at: Timestamp, now: Timestamp) -> Timestamp {
        let stops_at = self.stops_at();
        if stops_at > now { at.min(stops_at) } else { at }
    }

    /// Notes that a run takes up a chunk of a running attempt, if it is the first one.
    pub fn begin(&self, now: Timestamp) -> Option<Self> {
        let runs = matches!(self.phase, Phase::Runnable) && self.started_at.is_some();
        runs.then(|| Self { first_chunk_at: self.first_chunk_at.or(Some(now)), ..self.clone() })
    }

    /// The sweep looks at the job by this time.
    #[must_use]
    pub fn due_by(&self, at: Timestamp) -> Self {
        Self { wake_at: self.wake_at.map(|wake_at| wake_at.min(at)), ..self.clone() }
    }
}
