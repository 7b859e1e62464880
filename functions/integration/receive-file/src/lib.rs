//! `receive-file`: turns an object dropped under `inbox/<jobType>/` of the bucket into an upload and a job.
//!
//! Reads the bucket's notifications from the inbox queue. [`notification`] is their format, [`notes`] reads the job
//! that an object's metadata or its sidecar asks for, [`receive`] is the use case, [`handler`] maps the queue's event
//! to it and its result to the response, [`limits`] has the settings, [`mod@start`] builds the use case.

pub mod declaration;
pub mod handler;
pub mod limits;
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
