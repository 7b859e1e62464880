//! Job types in any language: which there are, and how webhooks are called.
//!
//! A job type can name a target in the place of Rust code: a Lambda function, or a web service. They are configured in
//! the setting `ROWMILL_JOB_TARGETS` of the functions, see [`config`]; [`Targets`] makes job types of them. What a
//! target is sent and answers, and what is made of an answer, is in [`rowmill_core::job_types::target_type`].
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | the setting, read and checked |
//! | [`gate`] | what stands before every target: how many calls at once, when to call again, when not to call at all |
//! | [`webhook`] | the call of a web service |
//! | [`addresses`], [`lookup`] | which addresses may be connected to |
//! | [`signature`] | what a web service knows Rowmill by |

#![warn(missing_docs)]

pub mod addresses;
pub mod config;
pub mod gate;
pub mod lookup;
pub mod signature;
pub mod webhook;

mod breaker;
mod retry_after;
mod targets;

pub use config::{ConfigError, TargetConfig};
pub use targets::{ConnectError, Connections, Targets};
