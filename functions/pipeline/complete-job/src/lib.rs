//! `complete-job`: ends an attempt whose items are all accounted for, once.
//!
//! Triggered by the completions queue. [`complete`] is the use case, [`compose`] its longer part, [`handler`] the way
//! from the queue's event to it.

#![warn(missing_docs)]

pub mod complete;
pub mod compose;
pub mod handler;
