//! The progress of a job, as several functions advance and show it.
//!
//! | module | holds |
//! |---|---|
//! | [`update`] | the one write of the job row |
//! | [`counters`] | the totals and the open tallies of an attempt |
//! | [`commit`] | commits of chunks, and the chunks that are sent after them |
//! | [`breaker`] | pause and resume of jobs whose target is down |
//! | [`views`] | a job as clients see it |

pub mod breaker;
pub mod commit;
pub mod counters;
pub mod update;
pub mod views;

pub use commit::JobSteps;
