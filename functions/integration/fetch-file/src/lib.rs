//! `fetch-file`: fetches the file of an upload from a server or an external bucket.
//!
//! Reads the fetches queue. [`fetch`] is the use case, [`origins`] tells servers from buckets, [`handler`] maps the
//! queue's event to the use case and its result to the response, [`mod@start`] builds it.

pub mod declaration;
pub mod fetch;
pub mod handler;
pub mod origins;
pub mod start;
