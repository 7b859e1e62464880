//! `erase-job`: erases what is stored of deleted jobs.
//!
//! A schedule invokes it each minute. [`erase`] is the use case, [`handler`] maps the tick to it, [`mod@start`] builds it.

pub mod declaration;
pub mod erase;
pub mod handler;
pub mod start;
