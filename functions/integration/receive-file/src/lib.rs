//! `receive-file`: turns an object dropped under `inbox/<jobType>/` into an upload and a job.
//!
//! Triggered by the bucket's notifications through the inbox queue. [`notification`] is what they say, [`notes`] the
//! request in an object's notes or sidecar, [`receive`] the use case, [`handler`] maps the queue's event to it,
//! [`mod@start`] starts the function.

#![warn(missing_docs)]

pub mod handler;
pub mod notes;
pub mod notification;
pub mod receive;
pub mod start;

#[cfg(test)]
mod handler_tests;
#[cfg(test)]
mod receive_tests;
#[cfg(test)]
mod test_inbox;
