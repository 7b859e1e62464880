//! `upload`: stores small files itself, and presigns the requests that send big files directly to the bucket.
//!
//! Behind `/api/uploads`. [`upload`] is the use case, [`unfinished`] the part of it about uploads that are not
//! complete, [`fetched`] the part about files that are fetched from external servers, [`error`] has the errors, [`request`] the bodies of requests, [`handler`] maps the HTTP request to the use
//! case and its result to the response, [`limits`] has the limits, [`mod@start`] builds the use case.

pub mod announced;
pub mod declaration;
pub mod error;
pub mod fetched;
pub mod handler;
pub mod limits;
pub mod request;
pub mod start;
pub mod unfinished;
pub mod upload;
