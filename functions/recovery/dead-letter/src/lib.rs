//! `dead-letter`: records the messages that a queue gave up on, and ends what they were about.
//!
//! Triggered by the three dead-letter queues. [`settle`] is the use case, [`handler`] maps the event to it.

#![warn(missing_docs)]

pub mod handler;
pub mod settle;
