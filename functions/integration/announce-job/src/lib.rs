//! `announce-job`: publishes an event when an attempt of a job starts and when it ends.
//!
//! Reads the jobs table's stream. So nothing is announced before it is stored, and everything stored is announced even
//! if the function that stored it dies. [`announce`] is the use case, [`handler`] maps the stream's event to it and its
//! result to the response, [`mod@start`] builds the use case.

pub mod announce;
pub mod declaration;
pub mod handler;
pub mod start;

#[cfg(test)]
mod handler_tests;
