//! `live-subscription`: answers the messages of live connections.
//!
//! Behind the route `$default` of the WebSocket API, so that a message that asks for nothing known gets an answer, too.
//! [`subscribe`] is the use case, [`messages`] bounds how many messages it takes, [`handler`] maps the event to it,
//! [`mod@start`] builds the use case.

pub mod declaration;
pub mod handler;
pub mod messages;
pub mod start;
pub mod subscribe;

#[cfg(test)]
mod subscribe_tests;
