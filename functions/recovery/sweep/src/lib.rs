//! `sweep`: sends again what a crash lost, and ends overdue jobs.
//!
//! Triggered by a schedule. [`sweep`] is the use case, [`handler`] maps the event to it.

#![warn(missing_docs)]

pub mod handler;
pub mod sweep;
