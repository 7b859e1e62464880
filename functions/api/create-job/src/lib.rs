//! `create-job`: takes a client's wish, checks all that can be checked while the client listens, and creates the job.
//!
//! Behind `POST /api/jobs`. [`create`] is the use case, [`request`] what a client may ask for, [`handler`] the way from the
//! HTTP request to the use case and back, [`mod@start`] the function as a process.

#![warn(missing_docs)]

pub mod create;
pub mod handler;
pub mod request;
pub mod start;
