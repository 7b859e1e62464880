//! Runs a Lambda function.
//!
//! | module | holds |
//! |---|---|
//! | [`serve`] | from an invocation to a handler and back; [`Batch::take_each`](serve::Batch::take_each) |
//! | [`live_events`] | the same for the events of a WebSocket API |
//! | [`http`] | callers, requests in, JSON and problems out |
//! | [`invocation`] | the log line at the end of each invocation |
//! | [`batch_threads`] | the threads that run items |

pub mod batch_threads;
mod deliveries;
pub mod http;
pub mod invocation;
pub mod live_events;
pub mod serve;
mod watched_thread;

/// Never drops a value that handlers use: they are called until the process ends.
fn forever<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
