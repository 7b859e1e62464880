//! What becomes of items on which a target failed as a whole: it threw an error, or answered with status 500.
//!
//! One of them may be the reason, which then must not take the others along; or the target may be broken, which must not
//! fail a million items. So, as long as it has answered no call, single items are sent: the first, the last, one in the
//! middle. Where it fails on all three, it is the target, and all items are tried again later. Once it has answered, what
//! it failed on is sent in halves, the halves that fail in halves again; a single item that it fails on is to blame.

use std::ops::Range;

use super::Results;
use crate::ports::TargetError;
use crate::ports::processor::{ItemError, ItemOutcome};

/// Code of an item that the target fails on, or may fail on.
pub(super) const TARGET_FAILED: &str = "target_failed";

/// Code of an item whose target does not answer.
pub(super) const TARGET_UNAVAILABLE: &str = "target_unavailable";

/// On how many single items a target fails before it is to blame itself, as long as it has answered nothing.
const PROBES: usize = 3;

/// The items handed over at once, as far as they are settled.
pub(super) struct Division {
    results: Vec<Option<Result<ItemOutcome, ItemError>>>,
    /// What is to be sent again, the next one last.
    open: Vec<Range<usize>>,
    /// The items that the target fails on although nothing is sent with them.
    alone: Vec<usize>,
    /// Whether the target has answered any call.
    answered: bool,
    /// What it told when it last failed.
    told: String,
    /// Whether there is no use in going on.
    hopeless: bool,
}

impl Division {
    /// So many items, none of them settled.
    pub fn of(items: usize) -> Self {
        let (open, alone, told) = (Vec::new(), Vec::new(), String::new());
        Self { results: vec![None; items], open, alone, answered: false, told, hopeless: false }
    }

    /// Settles one item.
    pub fn settle(&mut self, place: usize, result: Result<ItemOutcome, ItemError>) {
        self.results[place] = Some(result);
    }

    /// Takes in how a call with the items at these places ended.
    pub fn note(&mut self, range: Range<usize>, end: Result<Results, TargetError>) {
        match end {
            Ok(results) => {
                self.answered = true;
                for (place, result) in range.zip(results) {
                    self.settle(place, result);
                }
            }
            Err(TargetError::Failed { told }) => {
                self.told = told.into_owned();
                match range.len() {
                    0 | 1 => self.alone.extend(range),
                    items if self.answered => {
                        let middle = range.start + items / 2;
                        self.open.extend([middle..range.end, range.start..middle]);
                    }
                    _ => self.open.push(range),
                }
            }
            Err(error) => {
                self.hopeless |= matches!(error, TargetError::Unreachable { .. } | TargetError::Busy { .. });
                let error = item_error(&error);
                range.for_each(|place| self.settle(place, Err(error.clone())));
            }
        }
    }

    /// What to send next, if there is any use in it.
    pub fn next(&mut self) -> Option<Range<usize>> {
        let broken = !self.answered && self.alone.len() >= PROBES;
        if self.hopeless || broken {
            return None;
        }
        let range = self.open.pop()?;
        if self.answered {
            return Some(range);
        }
        let place = match self.alone.len() {
            0 => range.start,
            1 => range.end - 1,
            _ => range.start + range.len() / 2,
        };
        let rest = [place + 1..range.end, range.start..place];
        self.open.extend(rest.into_iter().filter(|rest| !rest.is_empty()));
        Some(place..place + 1)
    }

    /// A result for each item.
    pub fn into_results(mut self) -> Results {
        let message = |what: &str| format!("the target failed on {what}: {}", self.told);
        let to_blame = ItemError::permanent(TARGET_FAILED, message("this item"));
        let not_to_blame = ItemError::transient(TARGET_FAILED, message("whatever it was sent"));
        if self.answered {
            self.alone.iter().for_each(|place| self.results[*place] = Some(Err(to_blame.clone())));
        }
        self.results.into_iter().map(|result| result.unwrap_or_else(|| Err(not_to_blame.clone()))).collect()
    }
}

fn item_error(error: &TargetError) -> ItemError {
    let code = match error {
        TargetError::Unreachable { .. } | TargetError::Busy { .. } => {
            return ItemError::transient(TARGET_UNAVAILABLE, error.to_string());
        }
        TargetError::Failed { .. } => return ItemError::transient(TARGET_FAILED, error.to_string()),
        TargetError::Refused { .. } => "target_refused",
        TargetError::BadAnswer { .. } => "bad_answer",
    };
    ItemError::permanent(code, error.to_string())
}
