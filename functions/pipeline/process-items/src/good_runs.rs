//! The runs of this process that went well, by job type.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Counts good runs in memory, so that they cost nothing. A failed run reports those since the last report.
#[derive(Debug, Default)]
pub struct GoodRuns(Mutex<HashMap<String, u32>>);

impl GoodRuns {
    /// Counts a run of this job type.
    pub fn add(&self, job_type: &str) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match runs.get_mut(job_type) {
            Some(count) => *count = count.saturating_add(1),
            None => drop(runs.insert(job_type.to_owned(), 1)),
        }
    }

    /// Number of good runs since the last call.
    pub fn take(&self, job_type: &str) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(job_type).unwrap_or(0)
    }
}
