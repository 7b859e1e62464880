//! Pausing and resuming.

use jiff::Timestamp;

use super::Job;
use super::states::Transition;
use crate::model::breaker::BreakerPause;

impl Job {
    /// Whether no chunk may begin until it is resumed.
    pub const fn is_paused(&self) -> bool {
        matches!(self.status, super::Status::Paused)
    }

    pub const fn is_paused_by_owner(&self) -> bool {
        self.is_paused() && self.breaker_pause.is_none()
    }

    /// Whether the splitter waits: the job is paused, or its missing chunks are not all sent again.
    pub const fn is_held_back(&self) -> bool {
        self.is_paused() || self.resend_from.is_some()
    }

    /// Pauses it for its owner. A job that its owner has paused stays as it is; one that the breaker has paused is its
    /// owner's from then on. A stopped job is not paused: it is about to end.
    pub fn pause(&self, now: Timestamp) -> Option<Self> {
        if self.is_paused_by_owner() {
            return Some(self.clone());
        }
        if self.is_paused() {
            return Some(Self { breaker_pause: None, pauses: self.pauses + 1, moved_at: now, ..self.clone() });
        }
        self.begin_pause(now)
    }

    /// Pauses it because the target of its job type is down; the sweep looks at it at `look_at`. A paused job stays as it
    /// is, paused by its owner or by the breaker.
    pub fn pause_by_breaker(&self, reason: &BreakerPause, look_at: Timestamp) -> Option<Self> {
        if self.is_paused() {
            return Some(self.clone());
        }
        let paused = self.begin_pause(reason.at)?;
        Some(Self { breaker_pause: Some(reason.clone()), wake_at: Some(look_at), ..paused })
    }

    fn begin_pause(&self, now: Timestamp) -> Option<Self> {
        let status = Transition::Pause.apply(self.status).filter(|_| self.stop.is_none())?;
        Some(Self {
            status,
            paused_from: Some(self.status),
            paused_at: Some(now),
            pauses: self.pauses + 1,
            resend_from: None,
            moved_at: now,
            ..self.clone()
        })
    }

    /// Resumes it: its status is as before the pause, it is due for the sweep at once, and all chunks of its counted tallies
    /// may have to be sent again, from tally 0 on. `paused_at` stays until that begins.
    pub fn resume(&self, now: Timestamp) -> Option<Self> {
        self.is_paused().then(|| Self {
            pauses: self.pauses + 1,
            resend_from: Some(0),
            recoveries: 0,
            moved_at: now,
            wake_at: Some(now),
            ..self.out_of_pause()
        })
    }

    /// Resumes it for the breaker, if the breaker has paused it and nobody has resumed or paused it since `pauses` was read.
    pub fn resume_by_breaker(&self, pauses: u32, now: Timestamp) -> Option<Self> {
        let is_breakers = self.pauses == pauses && self.breaker_pause.is_some();
        self.resume(now).filter(|_| is_breakers)
    }

    /// The job out of its pause, if it is paused.
    #[must_use]
    pub fn out_of_pause(&self) -> Self {
        let resumed = Transition::out_of_pause(self.paused_from).apply(self.status);
        Self { status: resumed.unwrap_or(self.status), paused_from: None, breaker_pause: None, ..self.clone() }
    }

    /// Whether a chunk message is dropped that was sent after this many pauses and resumes: the job is paused, or it was
    /// since, and the resend sends the chunk. Otherwise both messages might run at once.
    pub const fn drops(&self, pauses: u32) -> bool {
        self.is_paused() || pauses < self.pauses
    }

    /// Whether a run that commits sends what waits for it in this tally. If not, the resend does: it notes a tally before it
    /// reads what the chunks of that tally wait for.
    pub fn sends_on_commit(&self, tally: u32) -> bool {
        self.paused_at.is_none() && self.resend_from.is_none_or(|from| tally <= from)
    }

    /// Notes how far the missing chunks are sent again, unless the job was paused since that resume, or somebody has noted
    /// more. After the last tally, all counted ones are dispatched.
    pub fn note_resent(&self, resent: Resent, now: Timestamp) -> Option<Self> {
        let (is_same, begun) = (self.pauses == resent.pauses, self.paused_at.is_none());
        let is_from = match resent.from {
            None => !begun && self.resend_from.is_some(),
            from => begun && self.resend_from == from,
        };
        if is_same && begun && resent.from.is_some() && self.resend_from == resent.next {
            return Some(self.clone());
        }
        let split = if resent.next.is_none() { self.split.all_dispatched() } else { self.split };
        let noted = Self { paused_at: None, resend_from: resent.next, split, moved_at: now, ..self.clone() };
        (is_same && is_from).then_some(noted)
    }
}

/// How far the missing chunks of a resumed job are sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resent {
    /// The resume, by the job's number of pauses and resumes.
    pub pauses: u32,
    /// The tally that the job row names; `None` if the resend begins.
    pub from: Option<u32>,
    /// The tally whose chunks are sent next; `None` after the last one.
    pub next: Option<u32>,
}
