//! `upload`: takes files in, small ones through itself, big ones straight into the bucket.
//!
//! Behind `/api/uploads`. [`upload`] is the use case, [`request`] what a client may announce, [`handler`] the way from the
//! HTTP request to the use case and back.

#![warn(missing_docs)]

pub mod handler;
pub mod request;
pub mod upload;
