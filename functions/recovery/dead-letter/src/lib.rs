//! `dead-letter`: records what a queue gave up on, and brings it to an end.
//!
//! Triggered by the three dead-letter queues. [`settle`] is the use case, [`handler`] the way from the event to it.

#![warn(missing_docs)]

pub mod handler;
pub mod settle;
