//! `push-progress`: tells live connections how their jobs change.
//!
//! Reads the jobs table's stream and writes no job row, so that no message can delay or fail a commit. [`push`] is the
//! use case, [`movement`] says what a change of a row means for the watchers, [`handler`] maps the stream's event to
//! it, [`limits`] has the limits, [`mod@start`] builds the use case.

pub mod declaration;
pub mod handler;
pub mod limits;
pub mod movement;
mod pace;
pub mod push;
pub mod start;

#[cfg(test)]
mod push_tests;
