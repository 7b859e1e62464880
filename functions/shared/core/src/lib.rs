//! The rules of Rowmill: what a job is, how its file becomes chunks, how chunks are counted exactly, and the ports
//! through which a function reaches the world.
//!
//! Nothing here knows AWS, a clock or an environment variable; adapters of the ports live in `rowmill-aws`, use cases in
//! the function crates. Read [`states`] for the life of a job, [`tally`] for how its counts stay exact and [`guide`] for
//! how to write a job type.

#![warn(missing_docs)]

pub mod accounts;
pub mod chunk_index;
pub mod dead_letter;
pub mod failed_items;
pub mod guide;
pub mod ids;
pub mod input;
pub mod job;
pub mod job_event;
pub mod job_types;
pub mod ledger;
pub mod messages;
pub mod outputs;
pub mod packing;
pub mod ports;
pub mod processor;
pub mod progress;
pub mod results;
pub mod segment;
pub mod skipped_items;
pub mod spec;
pub mod states;
pub mod tally;
mod tally_pages;
pub mod text;
pub mod upload;

#[cfg(feature = "testing")]
pub mod contract;
#[cfg(feature = "testing")]
pub mod in_memory;

#[cfg(test)]
mod job_event_tests;
