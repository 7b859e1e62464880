//! `cancel-job`: stops a job for its owner.
//!
//! Serves `POST /api/jobs/{jobGuid}/cancel`. [`cancel`] is the use case, [`handler`] maps HTTP to it.

#![warn(missing_docs)]

pub mod cancel;
pub mod handler;
