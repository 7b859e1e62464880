//! `process-items`: runs the items of a chunk through the job type's processor and commits the chunk, once.
//!
//! Triggered by the items queue, up to ten chunks at a time, and by the isolate queue, one chunk at a time. [`process`]
//! is the use case from the message to the commit, [`run`] runs the items of a chunk, `isolate` runs them one at a time
//! after the chunk's message became a dead letter, [`watch`] keeps the jobs' rows fresh, [`handler`] maps the queue's
//! event to the use case, [`mod@start`] starts the function.

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
