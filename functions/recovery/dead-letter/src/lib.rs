//! `dead-letter`: records the messages that a queue gave up on, and settles them.
//!
//! Reads the dead-letter queues of jobs, items, lanes and completions. [`settle`] is the use case, [`handler`] maps the
//! queue's event to it, [`limits`] has the limits, [`mod@start`] builds the use case.

pub mod declaration;
pub mod handler;
pub mod limits;
pub mod settle;
pub mod start;
