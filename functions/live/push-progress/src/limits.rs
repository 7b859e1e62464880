//! The limits of pushing.

use std::num::NonZeroUsize;
use std::time::Duration;

/// The shortest time between two `progress` messages of a job.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub const SENDS_AT_ONCE: usize = 16;

/// How many jobs the process remembers: whose they are, and when they were last told of.
pub const JOBS_REMEMBERED: NonZeroUsize = NonZeroUsize::new(20_000).unwrap();
