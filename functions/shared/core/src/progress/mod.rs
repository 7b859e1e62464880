//! The progress of a job, as several functions advance it.
//!
//! | module | holds |
//! |---|---|
//! | [`update`] | updates of the job row: transitions, stops, leases |
//! | [`counters`] | the totals and the open tallies of an attempt |
//! | [`commit`] | commits of chunks, and the chunks that are sent after them |
//! | [`checkpoints`] | the checkpoints of many chunks |
//! | [`tasks`] | tasks of workers: looks at those that are due, and who works on which |
//! | [`permits`] | permits of the holders of tasks |
//! | [`breaker`] | the breaker of a job type, for jobs whose target is down |
//! | [`why`], [`task_reasons`] | what holds a job up |

pub mod breaker;
pub mod checkpoints;
pub mod commit;
pub mod counters;
pub mod permits;
pub mod task_reasons;
pub mod tasks;
pub mod update;
pub mod waits;
pub mod why;
#[cfg(test)]
mod why_tests;

pub use commit::JobSteps;
