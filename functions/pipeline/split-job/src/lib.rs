//! `split-job`: reads a job's file once, cuts it into chunks on record borders and sends one message per chunk.
//!
//! Triggered by the jobs queue. [`split`] is the use case; [`mod@cut`] cuts the file, which [`source`] streams in
//! ranges, [`packed`] the text of one that is packed, [`dataset`] the records of a dataset, [`redrive`] the items that
//! had failed; [`handler`] is the way from the queue's event to the use case.

#![warn(missing_docs)]

pub mod cut;
pub mod dataset;
pub mod handler;
pub mod packed;
pub mod redrive;
pub mod source;
pub mod split;
