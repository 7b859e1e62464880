//! `receive-file`: an object dropped under `inbox/<jobType>/` of the bucket becomes an upload and a job by itself.
//!
//! Fed by the bucket's notifications through the inbox queue. [`notification`] is what they say, [`job notes`] what an object's
//! notes or its sidecar ask for, [`receive`] the use case, [`handler`] the way from the queue's event to it and back,
//! [`mod@start`] the function as a process.

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
