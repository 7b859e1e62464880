//! Finds the items that make a target fail, if it failed a call as a whole: it threw an error or answered with 500.
//!
//! The cause may be one bad item, and then the other items must not fail with it. Or the target itself may be broken,
//! and then a million items must not fail. So there are two phases:
//!
//! 1. Until the target has answered a call, single items are sent as probes: the first, the last, and one in the
//!    middle. If it fails on all three, the target is broken, and all items are retried later.
//! 2. After the target has answered a call, a failed batch is split into halves, and failed halves are split again. An
//!    item that fails in a call of its own is the cause and fails permanently.

use std::ops::Range;

use super::Results;
use crate::ports::TargetError;
use crate::ports::processor::{ItemError, ItemOutcome};

/// The code of an item on which the target fails, or may fail.
pub(super) const TARGET_FAILED: &str = "target_failed";

/// The code of an item whose target does not answer.
pub(super) const TARGET_UNAVAILABLE: &str = "target_unavailable";

/// The number of single items that a target must fail on to count as broken, if it has not answered any call.
const PROBES: usize = 3;

/// The items of one batch and the search for those that make the target fail.
pub(super) struct Bisection {
    /// The result of each item, once it is known.
    results: Vec<Option<Result<ItemOutcome, ItemError>>>,
    /// The ranges to send again; the last one is next.
    pending: Vec<Range<usize>>,
    /// The items on which the target failed in a call of their own.
    failed_alone: Vec<usize>,
    /// True if the target has answered any call.
    answered: bool,
    last_failure: String,
    /// True if the target became unavailable, so that no more calls are made.
    unavailable: bool,
}

impl Bisection {
    /// Starts with `items` items without results.
    pub fn of(items: usize) -> Self {
        let (pending, failed_alone, last_failure) = (Vec::new(), Vec::new(), String::new());
        let (answered, unavailable) = (false, false);
        Self { results: vec![None; items], pending, failed_alone, answered, last_failure, unavailable }
    }

    pub fn set(&mut self, place: usize, result: Result<ItemOutcome, ItemError>) {
        self.results[place] = Some(result);
    }

    /// Records the result of a call with the items of this range.
    pub fn record(&mut self, range: Range<usize>, end: Result<Results, TargetError>) {
        match end {
            Ok(results) => {
                self.answered = true;
                for (place, result) in range.zip(results) {
                    self.set(place, result);
                }
            }
            Err(TargetError::Failed { detail }) => {
                self.last_failure = detail.into_owned();
                match range.len() {
                    0 | 1 => self.failed_alone.extend(range),
                    items if self.answered => {
                        let middle = range.start + items / 2;
                        self.pending.extend([middle..range.end, range.start..middle]);
                    }
                    _ => self.pending.push(range),
                }
            }
            Err(error) => {
                self.unavailable |= matches!(error, TargetError::Unreachable { .. } | TargetError::Busy { .. });
                let error = item_error(&error);
                range.for_each(|place| self.set(place, Err(error.clone())));
            }
        }
    }

    /// The next range to send; `None` if everything is decided or the target is broken or unavailable.
    pub fn next(&mut self) -> Option<Range<usize>> {
        let broken = !self.answered && self.failed_alone.len() >= PROBES;
        if self.unavailable || broken {
            return None;
        }
        let range = self.pending.pop()?;
        if self.answered {
            return Some(range);
        }
        let place = match self.failed_alone.len() {
            0 => range.start,
            1 => range.end - 1,
            _ => range.start + range.len() / 2,
        };
        let rest = [place + 1..range.end, range.start..place];
        self.pending.extend(rest.into_iter().filter(|rest| !rest.is_empty()));
        Some(place..place + 1)
    }

    /// One result for each item. Items without a result get a transient error.
    pub fn into_results(mut self) -> Results {
        let message = |what: &str| format!("the target failed on {what}: {}", self.last_failure);
        let item_failed = ItemError::permanent(TARGET_FAILED, message("this item"));
        let target_failed = ItemError::transient(TARGET_FAILED, message("all items of the call"));
        if self.answered {
            self.failed_alone.iter().for_each(|place| self.results[*place] = Some(Err(item_failed.clone())));
        }
        self.results.into_iter().map(|result| result.unwrap_or_else(|| Err(target_failed.clone()))).collect()
    }
}

pub(super) fn item_error(error: &TargetError) -> ItemError {
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
