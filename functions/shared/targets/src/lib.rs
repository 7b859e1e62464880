//! External servers: targets, which are job types in any language, and sources, which files are fetched from.
//!
//! A job type can be implemented by a target instead of Rust code: by a Lambda function or a web service. The setting
//! `ROWMILL_JOB_TARGETS` of the functions configures targets, see [`config`]. [`Targets`] turns the configuration into
//! job types. [`rowmill_core::job_types::target_type`] describes requests, answers, and how answers are interpreted.
//!
//! | module | content |
//! |---|---|
//! | [`config`] | parses and checks the setting |
//! | [`gate`] | the gate in front of every target: its concurrency limit, the stop after unanswered calls, and retries |
//! | [`webhook`] | calls to a web service |
//! | [`sources`] | the servers that files are fetched from |
//! | [`addresses`], [`lookup`] | the addresses that Rowmill may connect to |
//! | [`signature`] | the signature by which a web service recognises Rowmill |

pub mod addresses;
pub mod config;
pub mod gate;
pub mod lookup;
pub mod signature;
pub mod sources;
pub mod webhook;

mod clients;
mod gate_state;
mod retry_after;
mod targets;

pub use config::{ConfigError, TargetConfig};
pub use targets::{ConnectError, Connections, Targets};
