//! A job and the stores that hold what its runs left.

use std::sync::Arc;

use crate::model::job::Job;
use crate::ports::{JobStore, Objects};

/// A job, with the stores to read its items from.
#[derive(Clone, Copy)]
pub struct StoredJob<'a> {
    /// The job's tallies and totals.
    pub jobs: &'a Arc<dyn JobStore>,
    /// The job's chunk indexes and run outputs.
    pub objects: &'a Arc<dyn Objects>,
    pub job: &'a Job,
}
