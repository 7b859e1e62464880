//! Pausing and resuming.

use std::time::Duration;

use jiff::Timestamp;

use super::states::Phase;
use super::{Job, SharedSlots};
use crate::model::breaker::BreakerPause;

/// The time limit of the functions behind the API, as the template sets it. A pause names the time at which its writer
/// read the clock, and takes effect this much later at most: the grace covers a run that began meanwhile.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(29);

impl Job {
    /// True if the splitter waits: the job is paused, or its missing chunks are not all sent again.
    pub const fn is_held_back(&self) -> bool {
        self.is_paused() || self.resend_from.is_some()
    }

    /// Pauses it for its owner. A job that its owner has paused stays as it is. The sweep looks at once when it returns
    /// its slots, and when it is paused for too long.
    pub fn pause(&self, now: Timestamp) -> Option<Self> {
        match &self.phase {
            Phase::Paused(None) if !self.awaits_slots() => Some(self.clone()),
            // Also before its split begins. One that the breaker has paused, or that waits for slots, is its owner's
            // from then on.
            Phase::Runnable | Phase::Paused(_) => Some(Self { wake_at: Some(now), ..self.paused(None, now) }),
            // It is about to end.
            Phase::Stopping(_) | Phase::Ended(_) => None,
        }
    }

    /// Pauses it because the target of its job type is down; the sweep looks at it by `look_at`. A paused job stays as
    /// it is, paused by its owner or by the breaker. The run that writes this ends by `deadline`, which may be later
    /// than a request would end.
    pub fn pause_by_breaker(&self, reason: &BreakerPause, look_at: Timestamp, deadline: Timestamp) -> Option<Self> {
        match &self.phase {
            Phase::Paused(_) => Some(self.clone()),
            Phase::Runnable => Some(Self {
                wake_at: Some(self.before_deadline(look_at, reason.at)),
                moved_at: reason.at,
                ..self.paused(Some(reason.clone()), reason.at.max(deadline - REQUEST_LIMIT))
            }),
            Phase::Stopping(_) | Phase::Ended(_) => None,
        }
    }

    fn paused(&self, by_breaker: Option<BreakerPause>, now: Timestamp) -> Self {
        Self {
            phase: Phase::Paused(by_breaker),
            // Anew if its owner takes over a pause of the breaker or a wait: only the owner's pause may be too long.
            // Never back: the caller may have read its clock before the other pause began.
            paused_at: self.paused_at.max(Some(now)),
            epoch: self.epoch + 1,
            resend_from: None,
            slots: if self.awaits_slots() { SharedSlots::Returned } else { self.slots },
            moved_at: now,
            ..self.clone()
        }
    }

    /// Resumes it: it is due for the sweep at once, and all chunks of its counted tallies may have to be sent again,
    /// from tally 0 on. `paused_at` stays until that begins. It takes its shared slots again if it has returned them.
    pub fn resume(&self, now: Timestamp) -> Option<Self> {
        match &self.phase {
            // One that has not run does not become `running`, which would announce its start.
            Phase::Paused(_) => Some(Self {
                phase: Phase::Runnable,
                epoch: self.epoch + 1,
                resend_from: Some(0),
                // One that waits takes them when it starts.
                slots: if self.awaits.is_some() { SharedSlots::Returned } else { SharedSlots::Held },
                recoveries: 0,
                moved_at: now,
                wake_at: Some(now),
                ..self.clone()
            }),
            Phase::Runnable | Phase::Stopping(_) | Phase::Ended(_) => None,
        }
    }

    /// Changes its `maxConcurrency`. If chunks may have messages, this is a pause and a resume in one write: their runs
    /// end under the old width, their messages are dropped, and after the grace a resend fills the new window.
    pub fn with_width(&self, width: u32, now: Timestamp) -> Option<Self> {
        // `talliesAhead` bounds only a job that has no width.
        let next = Self { max_concurrency: Some(width), tallies_ahead: None, ..self.clone() };
        // After a pause nothing is sent before the resend begins, under the width that the row has then.
        let is_sent = self.split.tallies > 0 && self.paused_at.is_none() && self.max_concurrency != Some(width);
        match self.phase {
            Phase::Runnable if is_sent => next.paused(None, now).resume(now),
            Phase::Runnable | Phase::Paused(_) => Some(next),
            Phase::Stopping(_) | Phase::Ended(_) => None,
        }
    }

    /// True if its `maxConcurrency` may have changed while chunks were in flight: then chunks may be committed before
    /// earlier ones of their chain.
    pub const fn may_have_gaps(&self) -> bool {
        self.epoch > 0
    }

    /// Resumes it for the breaker, if the breaker has paused it and it is still in this epoch.
    pub fn resume_by_breaker(&self, epoch: u32, now: Timestamp) -> Option<Self> {
        let is_breakers = self.epoch == epoch && self.breaker_pause().is_some();
        self.resume(now).filter(|_| is_breakers)
    }

    /// True if a run that commits sends what waits for it in this tally. If not, the resend does: it notes a tally
    /// before it reads what the chunks of that tally wait for.
    pub fn sends_on_commit(&self, tally: u32) -> bool {
        self.paused_at.is_none() && self.resend_from.is_none_or(|from| tally <= from)
    }

    /// Notes how far the missing chunks are sent again, unless the job was paused since that resume, or another run has
    /// noted that or more: of two runs at a tally one goes on. After the last tally, all counted ones are dispatched.
    pub fn note_resent(&self, resent: Resent, now: Timestamp) -> Option<Self> {
        let (is_same, begun) = (self.epoch == resent.epoch, self.paused_at.is_none());
        let is_from = match resent.from {
            None => !begun && self.resend_from.is_some(),
            from => begun && self.resend_from == from,
        };
        let split = if resent.next.is_none() { self.split.all_dispatched() } else { self.split };
        let noted = Self { paused_at: None, resend_from: resent.next, split, moved_at: now, ..self.clone() };
        (is_same && is_from).then_some(noted)
    }
}

/// Progress of a resend: how far the missing chunks of a resumed job are sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resent {
    /// The epoch that began with the resume.
    pub epoch: u32,
    /// The tally that the job row names; `None` if the resend begins.
    pub from: Option<u32>,
    /// The tally whose chunks are sent next; `None` after the last one.
    pub next: Option<u32>,
}
