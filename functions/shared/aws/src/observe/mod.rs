//! The log of a process, and what is read from it.
//!
//! | module | holds |
//! |---|---|
//! | [`telemetry`] | the log |
//! | [`audit`] | a log line for each change |
//! | [`metrics`] | CloudWatch metrics |
//! | [`trace`] | the trace of each job, in the log and in messages |

pub mod audit;
pub mod metrics;
pub mod telemetry;
pub mod trace;
