//! `fetch-file`: fetches the file of an upload from a server or a bucket of others.
//!
//! Reads the fetches queue. [`fetch`] is the use case, [`origins`] says where files are, [`handler`] maps the queue's event to it and its result to the
//! response, [`mod@start`] builds the use case.

pub mod declaration;
pub mod fetch;
pub mod handler;
pub mod origins;
pub mod start;
