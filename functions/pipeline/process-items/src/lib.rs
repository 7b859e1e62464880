//! `process-items`: runs the items of a chunk through the job type's processor and commits the chunk, once.
//!
//! Triggered by the items queue, up to ten chunks at a time, and by the isolate queue, one chunk at a time. [`process`]
//! is the use case from the message to the commit, [`run`] what happens between reading a chunk and counting it,
//! `isolate` how the items of a chunk are run whose message became a dead letter, [`watch`] what is known about the
//! jobs meanwhile, [`handler`] the way from the queue's event to the use case, [`mod@start`] the function as a process.

#![warn(missing_docs)]

pub mod handler;
pub mod prepared;
pub mod process;
pub mod run;
pub mod start;
pub mod watch;

mod isolate;

#[cfg(test)]
mod run_tests;
