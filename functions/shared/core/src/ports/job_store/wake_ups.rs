use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::JobGuid;
use crate::model::job::Job;
use crate::ports::PortError;

/// When the sweep looks at which job.
#[async_trait]
pub trait WakeUps: Send + Sync {
    /// Lists the jobs of a shard (0 to [`WAKE_SHARDS`], exclusive) that are due by `now`: at most `limit`, longest due
    /// first. Reads an index that may lag behind; [`wake_later`](Self::wake_later) tells whether an entry is still current.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<Due>, PortError>;

    /// Claims a due job: makes it due again at `next`. Condition: it is still due at the time in `due`, so only one of many
    /// sweeps claims it. Returns the job after the write, or none if the condition fails.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn wake_later(&self, due: Due, next: Timestamp, recoveries: u32) -> Result<Option<Job>, PortError>;
}

/// A job that is due to be swept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// The job.
    pub job: JobGuid,
    /// Since when it is due.
    pub at: Timestamp,
}

/// The number of shards of the wake index. Several shards keep the load off a single partition.
pub const WAKE_SHARDS: u32 = 8;
