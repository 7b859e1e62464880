//! `cancel-job`: cancels, pauses and resumes a job for its owner.
//!
//! Behind `POST /api/jobs/{jobGuid}/cancel`, `…/pause` and `…/resume`. [`cancel`] and [`pause`] are the use cases,
//! [`handler`] maps the HTTP requests to them and their results to responses, [`mod@start`] builds the use cases.

pub mod cancel;
pub mod handler;
pub mod pause;
pub mod start;

/// The function's name, in the template and in the table of routes.
pub const NAME: &str = "cancel-job";
