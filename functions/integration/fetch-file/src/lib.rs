//! `fetch-file`: fetches the file of an upload from a server of others.
//!
//! Reads the fetches queue. [`fetch`] is the use case, [`handler`] maps the queue's event to it and its result to the
//! response, [`mod@start`] builds the use case.

pub mod declaration;
pub mod fetch;
pub mod handler;
pub mod start;
