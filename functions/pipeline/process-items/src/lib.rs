//! `process-items`: runs the items of a chunk through the job type's processor and commits the chunk, once.
//!
//! Reads the items queue, up to ten chunks at a time, and the isolate and the lanes queue, one chunk at a time.
//!
//! | module | holds |
//! |---|---|
//! | [`process`] | the use case, from the message to the commit |
//! | `plan`, [`end`] | its decisions; the ends of a delivery |
//! | [`run`], `isolate` | runs the items of a chunk; of one whose message became a dead letter |
//! | [`prepared`] | the processors that the process keeps |
//! | [`open_chunk`] | reads and writes a chunk for a run |
//! | [`reports`] | reports runs to the breaker of the job type |
//! | [`lane`] | holds the lane of a message |
//! | [`invocation`] | the state that the chunks of an invocation share |
//! | [`watch`], [`neighbours`] | reads the jobs of these chunks; reads chunks together |
//! | [`handler`], [`limits`], [`mod@start`] | maps the queue's event to the use case; the limits; builds the use case |

pub mod declaration;
pub mod end;
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

mod call;
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
