//! `cancel-job`: cancels, pauses, resumes, retunes and deletes a job for its owner.
//!
//! Behind `PATCH` and `DELETE /api/jobs/{jobGuid}`, and `POST /api/jobs/{jobGuid}/cancel`, `…/pause` and `…/resume`.
//! [`cancel`], [`pause`], [`retune`] and [`delete`] are the use cases, [`change`] is what they share, [`error`] says why
//! they refuse, [`handler`] maps the HTTP requests to them and their results to responses, [`mod@start`] wires them.

pub mod cancel;
pub mod change;
pub mod declaration;
pub mod delete;
pub mod error;
pub mod handler;
pub mod pause;
pub mod retune;
pub mod start;
