use async_trait::async_trait;

use crate::model::ids::JobGuid;
use crate::ports::PortResult;

/// Erasing the rows of a deleted job.
#[async_trait]
pub trait Erasures: Send + Sync {
    /// Erases rows of a job that is deleted or has no job row, at most a few hundred in a call, and the job row last.
    /// Returns whether none is left. Of any other job it erases nothing.
    async fn erase_rows(&self, job: JobGuid) -> PortResult<bool>;
}
