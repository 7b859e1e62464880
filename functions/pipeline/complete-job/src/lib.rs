//! `complete-job`: ends an attempt once all its items are counted, exactly once.
//!
//! Reads the completions queue. [`complete`] is the use case, [`compose`] writes the result files, [`copy`] copies them
//! into an external bucket, [`slot`] is the time that an invocation has, [`handler`] maps the queue's event to it,
//! [`limits`] has the limits, [`mod@start`] builds the use case.

pub mod complete;
pub mod compose;
pub mod copy;
pub mod declaration;
pub mod handler;
pub mod limits;
pub mod slot;
pub mod start;
