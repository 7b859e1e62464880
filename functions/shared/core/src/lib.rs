//! The rules of Rowmill: what a job is, how its file becomes chunks, how chunks are counted exactly, and the ports
//! through which a function reaches the world.
//!
//! ```text
//! words ─► text ─► model ─► ports ─► items ─► sending ─► wiring ─► progress, callers, job_types ─► the function crates
//! ```
//!
//! A module uses only modules to its left:
//!
//! - [`mod@words`]: closed vocabularies: enums with stable names.
//! - [`text`]: records, borders and cells of a text file. Pure.
//! - [`model`]: jobs, tallies, checkpoints, messages and results as types, with their rules. Pure.
//! - [`ports`]: the traits that adapters implement, and the traits that a job type implements.
//! - [`items`]: reading the items of a chunk, and walking through the failed, skipped and written items of a job.
//! - [`sending`]: where a message goes: lanes, priorities, live connections.
//! - [`wiring`]: the ports of a function as one value, which use cases are built from.
//! - [`progress`]: the steps of a job that several functions share: updating the job row, committing a chunk, closing a
//!   tally, ending the split.
//! - [`callers`]: callers that are refused.
//! - [`job_types`]: the job types that Rowmill ships.
//!
//! Nothing here knows AWS, a clock or an environment variable. Adapters live in `rowmill-aws`, use cases in the
//! function crates. Read [`model::job::states`] for the life of a job, [`model::tally`] for how its counts stay exact
//! and [`guide`] for how to write a job type.

pub mod callers;
pub mod guide;
pub mod items;
pub mod job_types;
pub mod model;
pub mod ports;
pub mod progress;
pub mod sending;
pub mod text;
pub mod whole;
pub mod wiring;
pub mod words;

// What its unit tests share with the tests of the other crates. `rowmill-testing` needs this crate, so its files are
// compiled here once more.
#[cfg(test)]
extern crate self as rowmill_core;
#[cfg(test)]
#[path = "../../testing/src/fixtures.rs"]
pub mod fixtures;
#[cfg(test)]
#[path = "../../testing/src/in_memory/mod.rs"]
pub mod in_memory;
