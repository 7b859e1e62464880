//! Rowmill on AWS: the adapters of the ports in `rowmill-core`, and what every function needs around its use case.
//!
//! A function's `main` calls [`start`], takes the adapters and settings it needs from the [`Runtime`], and hands its
//! handler to [`Runtime::serve_http`], [`Runtime::serve_queue`], [`Runtime::serve_stream`] or [`Runtime::serve_schedule`].
//! What is counted along the way (requests by service, DynamoDB capacity, peak memory) is logged once per invocation.
//!
//! | module | holds |
//! |---|---|
//! | [`runtime`] | start-up: settings, adapters |
//! | [`serve`] | the way from an invocation to a handler and back; [`Batch::take_each`] |
//! | [`http`] | requests in, JSON and problems out |
//! | [`dynamodb`] | jobs, uploads and records, and what a table's stream tells |
//! | [`eventbridge`] | the bus on which other systems hear of jobs |
//! | [`s3`] | objects and transfers that go past the functions |
//! | [`sqs`] | queues |
//! | [`lambda`] | functions as targets of job types |
//! | [`clients`], [`meter`] | the SDK's clients, and what is counted in them |
//! | [`metrics`] | what a function has CloudWatch count |

#![warn(missing_docs)]

pub mod clients;
mod deliveries;
pub mod dynamodb;
pub mod eventbridge;
pub mod http;
pub mod invocation;
pub mod lambda;
pub mod meter;
pub mod metrics;
pub mod runtime;
pub mod s3;
pub mod serve;
pub mod settings;
pub mod sqs;
pub mod system;
pub mod telemetry;

mod retry;

pub use runtime::{Runtime, start};
pub use serve::{Batch, Delivery};
pub use settings::StartError;
