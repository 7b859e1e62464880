//! `sweep`: recovers jobs after a crash, and stops jobs past their deadline.
//!
//! Called by a schedule. [`sweep`] is the use case, [`census`] counts the tasks of workers beside it, [`handler`] maps
//! the tick to both, [`limits`] has the limits, [`mod@start`] builds the use cases.

pub mod census;
pub mod declaration;
pub mod handler;
pub mod limits;
pub mod start;
pub mod sweep;
mod unreadable;
