//! `job-status`: shows jobs, their failed items, results, dead letters and tasks, audits them, and tells what holds them
//! up.
//!
//! Behind `GET /api/jobs` and the paths below it. The [`JobReader`] shows a job and lists jobs, [`items`] lists failed
//! and skipped items, [`results`] links to the results, the [`Auditor`] audits a job, [`tasks`] tells who works on its tasks,
//! [`why`] what holds it up, [`repeat`] how to ask for the same again, [`handler`] maps the HTTP request to these and their result to the response, [`limits`] has the limits of a page, [`mod@start`] builds the use cases.
//!
//! [`JobReader`]: rowmill_api::job::JobReader
//! [`Auditor`]: rowmill_core::items::audit::Auditor

pub mod declaration;
pub mod handler;
pub mod items;
pub mod limits;
pub mod repeat;
pub mod results;
pub mod start;
pub mod tasks;
pub mod why;
