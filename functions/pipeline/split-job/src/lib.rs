//! `split-job`: reads a job's file once, cuts it into chunks on record borders and sends one message per chunk.
//!
//! Triggered by the jobs queue. [`split`] is the use case, [`dispatch`] puts a tally and sends its messages, [`handler`]
//! maps the queue's event to the use case. The input is cut by [`mod@cut`] (an upload of plain text, streamed in ranges by
//! [`source`]), [`packed`] (a packed upload), [`dataset`] (the records of a dataset) or [`redrive`] (the failed items).

#![warn(missing_docs)]

pub mod cut;
pub mod dataset;
pub mod dispatch;
pub mod handler;
pub mod packed;
pub mod redrive;
pub mod source;
pub mod split;
