//! `split-job`: reads a job's file once, cuts it into chunks on record borders and sends one message per chunk.
//!
//! Triggered by the jobs queue. [`split`] is the use case, [`source`] the file as a stream of ranges, [`handler`] the way
//! from the queue's event to the use case.

#![warn(missing_docs)]

pub mod handler;
pub mod source;
pub mod split;
