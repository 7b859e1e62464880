//! `sweep`: recovers what a crash lost, and ends what is overdue.
//!
//! Triggered by a schedule. [`sweep`] is the use case, [`handler`] the way from the event to it.

#![warn(missing_docs)]

pub mod handler;
pub mod sweep;
