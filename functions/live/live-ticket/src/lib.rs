//! `live-ticket`: gives out tickets for live connections.
//!
//! Behind `POST /api/live/tickets`. A ticket stands in for the caller's token, which must not be in an address.
//! [`issue`] is the use case, [`handler`] maps the HTTP request to it and its result to the response, [`mod@start`]
//! builds the use case.

pub mod declaration;
pub mod handler;
pub mod issue;
pub mod start;

#[cfg(test)]
mod issue_tests;
