//! `live-connection`: opens and closes live connections.
//!
//! Behind the routes `$connect` and `$disconnect` of the WebSocket API. [`connect`] is the use case, [`handler`] maps
//! the event to it and its result to the answer, [`mod@start`] builds the use case.

pub mod connect;
pub mod declaration;
pub mod handler;
pub mod start;

#[cfg(test)]
mod connect_tests;
