//! `announce-job`: tells other systems when an attempt of a job begins and when it ends.
//!
//! Fed by the jobs table's stream, so that nothing is told before it is stored, and what is stored is told whatever becomes
//! of the function that stored it. [`announce`] is the use case, [`handler`] the way from the stream's event to it and back.

#![warn(missing_docs)]

pub mod announce;
pub mod handler;

#[cfg(test)]
mod handler_tests;
