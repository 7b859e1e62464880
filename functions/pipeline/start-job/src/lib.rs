//! `start-job`: looks for what jobs wait for, and has those split for which all is there.
//!
//! Reads the starts queue, to which `split-job` passes the messages of jobs that wait. [`starter`] is the use case,
//! [`handler`] maps the queue's event to it, [`mod@start`] builds it.

pub mod declaration;
pub mod handler;
pub mod start;
pub mod starter;
