//! `process-items`: runs the items of a chunk through the job type's processor and commits the chunk, once.
//!
//! Reads the items queue, up to ten chunks at a time, and the isolate queue, one chunk at a time. [`process`] is the use
//! case from the message to the commit: `plan` decides, [`run`] runs the items, `isolate` those of a chunk whose message became a dead
//! letter, [`open_chunk`] reads and writes a chunk for them, and [`reports`] tell its breaker. [`invocation`] is what the chunks of an invocation share: [`watch`] is what is known about their jobs, [`neighbours`] reads them together.
//! [`handler`] maps the queue's event to the use case, [`limits`] has the limits, [`mod@start`] builds the use case.

pub mod handler;
pub mod invocation;
pub mod lane;
pub mod limits;
pub mod neighbours;
pub mod open_chunk;
pub mod prepared;
pub mod process;
pub mod reports;
pub mod run;
pub mod start;
pub mod watch;

mod isolate;
mod plan;

#[cfg(test)]
mod neighbours_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod prepared_tests;
#[cfg(test)]
mod run_tests;
