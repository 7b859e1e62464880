use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::ids::JobGuid;
use crate::ports::PortError;

/// When the sweep looks at which job.
#[async_trait]
pub trait WakeUps: Send + Sync {
    /// Lists the jobs of a shard (0 to [`WAKE_SHARDS`], exclusive, or [`ERASE_SHARD`]) that are due by `now`: at most
    /// `limit`, longest due first. Reads an index that may lag behind; the job row tells whether an entry is still current.
    async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<Due>, PortError>;

    /// Makes a job whose row cannot be read due again at `next`, if it is still due at the time in `due`.
    async fn put_off(&self, due: Due, next: Timestamp) -> Result<(), PortError>;
}

/// A job that is due to be swept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    pub job: JobGuid,
    /// Since when it is due.
    pub at: Timestamp,
}

/// The number of shards of the wake index. Several shards keep the load off a single partition.
pub const WAKE_SHARDS: u32 = 8;

/// The shard of the deleted jobs, which are due to be erased. The sweep does not look at it.
pub const ERASE_SHARD: u32 = WAKE_SHARDS;
