//! `complete-job`: ends an attempt whose items are all accounted for, once.
//!
//! Triggered by the completions queue. [`complete`] is the use case, [`compose`] writes the result files, [`slot`] is the
//! time that an invocation has, [`handler`] maps the queue's event to the use case.

#![warn(missing_docs)]

pub mod complete;
pub mod compose;
pub mod handler;
pub mod slot;
