//! The progress of a split, and the handover of a composition. Each of these transitions needs the lease.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Job;
use super::states::Phase;
use crate::model::ids::RunId;
use crate::model::warnings::Warning;
use crate::text::Position;

/// The state of the split of the current attempt.
///
/// The first attempt cuts the file: `cursor` is a place in it. Each later attempt cuts the list of failed items:
/// `cursor.row` counts the dispatched ones (from 1, like rows), `cursor.offset` is the row number of the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SplitState {
    /// Number of counted tallies; no message of any other tally was ever sent.
    pub tallies: u32,
    /// For how many tallies all messages are known to be sent: `tallies`, or one less.
    pub dispatched: u32,
    /// The border after the last counted tally.
    pub cursor: Position,
    /// True if the split has ended: no more tallies will follow.
    pub done: bool,
    /// True if it ended because all items are dispatched.
    pub at_end: bool,
}

impl SplitState {
    pub const fn from(offset: u64) -> Self {
        Self { tallies: 0, dispatched: 0, cursor: Position { offset, row: 1 }, done: false, at_end: false }
    }

    /// All counted tallies are dispatched.
    pub(super) const fn all_dispatched(self) -> Self {
        Self { dispatched: self.tallies, ..self }
    }
}

impl Job {
    /// True if all items of the attempt are dispatched.
    pub fn is_split(&self) -> bool {
        self.split.done && (self.split.at_end || self.redrive.is_some())
    }

    /// Counts tally `number`, which ends at the border `next`; all tallies before it are dispatched. Only a runnable
    /// job counts it, after the end of a resend and before that of the split. Counted before by the same run, the tally
    /// stays counted.
    pub fn count_tally(&self, holder: RunId, number: u32, next: Position, now: Timestamp) -> Option<Self> {
        let split = SplitState { tallies: number + 1, dispatched: number, cursor: next, ..self.split };
        if self.is_held_by(holder) && (self.split.tallies, self.split.cursor) == (split.tallies, next) {
            return Some(self.clone());
        }
        let goes_on = matches!(self.phase, Phase::Runnable) && self.resend_from.is_none() && !self.split.done;
        let is_next = self.is_held_by(holder) && self.split.tallies == number;
        (goes_on && is_next).then(|| Self { split, moved_at: now, ..self.clone() })
    }

    /// Replaces the warnings.
    pub fn warn(&self, holder: RunId, warnings: &[Warning], now: Timestamp) -> Option<Self> {
        self.is_held_by(holder).then(|| Self { warnings: warnings.to_vec(), moved_at: now, ..self.clone() })
    }

    /// Hands the split over to the next invocation: all counted tallies are dispatched, the lease is free.
    pub fn hand_split_over(&self, holder: RunId, now: Timestamp) -> Option<Self> {
        let next = Self { split: self.split.all_dispatched(), lease: None, moved_at: now, ..self.clone() };
        self.is_held_by(holder).then_some(next)
    }

    /// Ends the split: no more tallies follow, the lease is free. `at_end`: all items are dispatched.
    pub fn finish_split(&self, holder: RunId, at_end: bool, now: Timestamp) -> Option<Self> {
        let split = SplitState { done: true, at_end, ..self.split.all_dispatched() };
        self.is_held_by(holder).then(|| Self { split, lease: None, moved_at: now, ..self.clone() })
    }

    /// Names the stored state of a composition that continues in another invocation, and frees the lease. Named
    /// before, it stays named.
    pub fn hand_composition_over(&self, holder: RunId, state: RunId, now: Timestamp) -> Option<Self> {
        if self.composing == Some(state) {
            return Some(self.clone());
        }
        let next = Self { composing: Some(state), lease: None, moved_at: now, ..self.clone() };
        self.is_held_by(holder).then_some(next)
    }
}
