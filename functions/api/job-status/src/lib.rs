//! `job-status`: shows jobs and the items that failed.
//!
//! Behind `GET /api/jobs` and what is below it. [`show`] shows a job and lists jobs, [`items`] pages through failed items,
//! [`handler`] is the way from the HTTP request to these and back.

#![warn(missing_docs)]

pub mod handler;
pub mod items;
pub mod results;
pub mod show;
