//! `create-job`: checks a client's request as far as possible before it answers, and creates the job.
//!
//! Serves `POST /api/jobs`. [`create`] is the use case, [`source`] detects what the job runs over, [`error`] names what can
//! go wrong, [`request`] is the request's body, [`handler`] maps HTTP to the use case, [`mod@start`] starts the function.

#![warn(missing_docs)]

pub mod create;
pub mod error;
pub mod handler;
pub mod request;
pub mod source;
pub mod start;
