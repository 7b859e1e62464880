//! `upload`: receives files, small ones in the request, big ones straight into the bucket.
//!
//! Serves `/api/uploads`. [`upload`] is the use case, [`request`] the bodies of requests and answers, [`handler`] maps
//! HTTP to the use case.

#![warn(missing_docs)]

pub mod handler;
pub mod request;
pub mod upload;
