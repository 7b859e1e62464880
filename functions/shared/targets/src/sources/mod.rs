//! The servers that files are fetched from.
//!
//! [`hosts`] says which they may be, [`http`] reads from them.

pub mod hosts;
pub mod http;

pub use hosts::{FetchHosts, SourceRefused};
pub use http::HttpFiles;
