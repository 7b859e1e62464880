//! `announce-job`: publishes an event when an attempt of a job begins and when it ends.
//!
//! Triggered by the jobs table's stream. So an event is never published before its change is stored, and every stored
//! change is announced even if the function that stored it dies. [`announce`] is the use case, [`handler`] maps the
//! stream's event to it.

#![warn(missing_docs)]

pub mod announce;
pub mod handler;

#[cfg(test)]
mod handler_tests;
