//! `process-items`: runs the items of a chunk through the job type's processor and commits the chunk, once.
//!
//! Reads the items queue, up to ten chunks at a time, and the isolate queue, one chunk at a time. [`process`] is the use
//! case from the message to the commit, [`run`] the part between reading a chunk and counting it, `isolate` runs the
//! items of a chunk whose message became a dead letter, `failing` what follows if its target is down. [`invocation`] is what
//! the chunks of an invocation share: [`watch`] is what is known about their jobs, [`neighbours`] reads them together.
//! [`handler`] maps the queue's event to the use case, [`limits`] has the limits, [`mod@start`] builds the adapters.

pub mod good_runs;
pub mod handler;
pub mod invocation;
pub mod limits;
pub mod neighbours;
pub mod prepared;
pub mod process;
pub mod run;
pub mod start;
pub mod watch;

mod delivery;
mod failing;
mod isolate;
mod lane;

#[cfg(test)]
mod neighbours_tests;
#[cfg(test)]
mod prepared_tests;
#[cfg(test)]
mod run_tests;
