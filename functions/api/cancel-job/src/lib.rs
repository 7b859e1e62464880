//! `cancel-job`: stops a job for its owner.
//!
//! Triggered by `POST /api/jobs/{jobGuid}/cancel`. [`cancel`] is the use case, [`handler`] the way from the event to it.

#![warn(missing_docs)]

pub mod cancel;
pub mod handler;
