//! Rowmill on AWS: the adapters of the ports in `rowmill-core`, and what every function needs around its use case.
//!
//! A function's `start.rs` calls [`start`], builds its use case from the ports and its groups of settings, and hands it
//! to [`host::serve`] with a handler. Each invocation ends with one log line: its requests by service, its DynamoDB
//! capacity and the peak of the process's memory.
//!
//! ```text
//! observe ─► sdk ─► adapters ─► host ─► runtime
//! ```
//!
//! A room uses only rooms to its left.
//!
//! | room | holds |
//! |---|---|
//! | [`observe`] | the log, its audit lines, traces of jobs, CloudWatch metrics |
//! | [`sdk`] | what the adapters share: the SDK's clients, retries, and the count of requests |
//! | [`adapters`] | the ports on DynamoDB, S3, SQS, EventBridge, API Gateway, Lambda and Secrets Manager; clock and randomness |
//! | [`host`] | from an invocation to a handler and back; HTTP; the threads that run items |
//! | [`runtime`] | start-up, and the ports from the environment |

pub mod adapters;
pub mod host;
pub mod observe;
pub mod runtime;
pub mod sdk;

pub use host::serve::{Batch, Delivery};
pub use runtime::{Runtime, groups, start};
