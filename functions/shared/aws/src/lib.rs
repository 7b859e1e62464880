//! Rowmill on AWS: the adapters of the ports in `rowmill-core`, and what every function needs around its use case.
//!
//! A function's `start.rs` calls [`start`], takes its adapters from the [`Runtime`], reads its groups of settings, and
//! hands its handler to [`Runtime::serve_api`], [`Runtime::serve_queue`], [`Runtime::serve_stream`], [`Runtime::serve_live`] or
//! [`Runtime::serve_schedule`]. Each invocation ends with one log line: its requests by service, its DynamoDB capacity
//! and the peak of the process's memory.
//!
//! | module | holds |
//! |---|---|
//! | [`runtime`] | start-up and adapters |
//! | [`serve`] | from an invocation to a handler and back; [`Batch::take_each`] |
//! | [`live_events`] | the same for the events of a WebSocket API |
//! | [`http`] | callers, requests in, JSON and problems out |
//! | [`api_gateway`] | messages to live connections |
//! | [`audit`] | a log line for each change |
//! | [`dynamodb`] | jobs, uploads, records, breakers, quotas, live connections, and the changes in a table's stream |
//! | [`eventbridge`] | the bus that receives the events of jobs |
//! | [`s3`] | objects and presigned transfers |
//! | [`secrets_manager`] | the secret that signs the calls of webhooks |
//! | [`sqs`] | queues |
//! | [`lambda`] | functions as targets of job types |
//! | [`batch_threads`] | the threads that run items |
//! | [`clients`], [`meter`] | the SDK's clients, and the count of their requests |
//! | [`patience`] | for how long throttled requests are repeated |
//! | [`usage_shares`] | which job pays for what was counted |
//! | [`metrics`] | CloudWatch metrics |
//! | [`trace`] | the trace of each job, in the log and in messages |
//! | [`denied`] | missing permissions, reported |
//! | [`telemetry`], [`invocation`] | the log, and its line at the end of each invocation |
//! | [`system`] | the clock and randomness |

pub mod api_gateway;
pub mod audit;
pub mod batch_threads;
pub mod clients;
mod deliveries;
pub mod denied;
pub mod dynamodb;
pub mod eventbridge;
pub mod http;
pub mod invocation;
pub mod lambda;
pub mod live_events;
pub mod meter;
pub mod metrics;
pub mod patience;
pub mod runtime;
pub mod s3;
pub mod secrets_manager;
pub mod serve;
pub mod sqs;
pub mod system;
pub mod telemetry;
pub mod trace;
pub mod usage_shares;

mod retry;
mod thread_priority;

pub use runtime::{Runtime, start};
pub use serve::{Batch, Delivery};
