//! `sweep`: recovers jobs after a crash, and stops jobs past their deadline.
//!
//! Called by a schedule. [`sweep`] is the use case, [`handler`] maps the tick to it, [`limits`] has the limits,
//! [`mod@start`] builds the use case.

pub mod declaration;
pub mod handler;
pub mod limits;
pub mod start;
pub mod sweep;
mod unreadable;
