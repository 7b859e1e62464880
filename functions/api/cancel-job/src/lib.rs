//! `cancel-job`: stops a job for its owner.
//!
//! Behind `POST /api/jobs/{jobGuid}/cancel`. [`cancel`] is the use case, [`handler`] maps the HTTP request to it and its
//! result to the response, [`mod@start`] builds the adapters.

#![warn(missing_docs)]

pub mod cancel;
pub mod handler;
pub mod start;

/// The function's name, in the template and in the table of routes.
pub const NAME: &str = "cancel-job";
