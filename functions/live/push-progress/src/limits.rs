//! The limits of pushing.

use std::num::NonZeroUsize;
use std::time::Duration;

/// The shortest time between two `progress` messages of a job.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub const SENDS_AT_ONCE: usize = 16;

/// Number of jobs that the process remembers: their owners, and when it last told of them.
pub const JOBS_REMEMBERED: NonZeroUsize = NonZeroUsize::new(20_000).unwrap();
