//! A redrive: the next attempt of an ended job, over its failed items.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::states::Phase;
use super::{Job, SplitState};
use crate::model::causes::Selection;
use crate::model::ids::RunId;
use crate::model::tally::Counts;
use crate::text::Position;

/// The input of an attempt after the first: the items that had failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Redrive {
    /// The request that made it, by which a repeated write is recognised.
    pub by: RunId,
    /// The counts of the whole job before it. All the failed items are its items.
    pub before: Counts,
    /// The last attempt before it that dispatched all its items: the failed items are listed from that attempt on.
    pub base: u32,
    /// Where the first attempt ended, if it did not reach the end of the file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unprocessed_from: Option<Position>,
    /// The key of the rows that replace failed ones, if the request named a corrected file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub corrected: Option<String>,
    /// Which of the failed items are processed, if not all. The others keep their failures.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selection: Option<Selection>,
}

impl Redrive {
    /// The counts of the whole job, given the counts of this attempt.
    ///
    /// An item keeps its last outcome until the attempt gives it a new one, so the sum never changes. An item that this
    /// attempt skips stays failed, as it was before.
    pub const fn merged(&self, attempt: Counts) -> Counts {
        Counts {
            succeeded: self.before.succeeded + attempt.succeeded,
            failed: self.before.failed.saturating_sub(attempt.succeeded),
            skipped: self.before.skipped,
        }
    }
}

impl Job {
    /// Starts the next attempt at `now`; the sweep first looks at it at `wake_at`.
    pub fn redrive(&self, redrive: Redrive, now: Timestamp, deadline: Timestamp, wake_at: Timestamp) -> Option<Self> {
        // An active job may still get more failed items. What an undone one would write would be undone too.
        (self.is_ended() && self.undone_by.is_none() && self.deleted_at.is_none()).then(|| Self {
            phase: Phase::Runnable,
            attempt: self.attempt + 1,
            split: SplitState::from(0),
            redrive: Some(redrive),
            recoveries: 0,
            // It has failed items, so a function had taken it up.
            started_at: self.started_at.or(Some(now)),
            attempt_at: now,
            first_chunk_at: None,
            moved_at: now,
            deadline_at: deadline,
            start_by: None,
            wake_at: Some(wake_at),
            ..self.clone()
        })
    }

    /// The first attempt whose failures must be read to list the failed items: the current one if it dispatched all its
    /// items, else the last earlier one that did.
    pub fn failures_since(&self) -> u32 {
        match &self.redrive {
            None => 1,
            Some(redrive) if self.split.done && self.items_dispatched() == redrive.before.failed => self.attempt,
            Some(redrive) => redrive.base,
        }
    }

    /// The counts of the whole job, given the counts of the current attempt.
    pub fn merged(&self, attempt: Counts) -> Counts {
        self.redrive.as_ref().map_or(attempt, |redrive| redrive.merged(attempt))
    }
}
