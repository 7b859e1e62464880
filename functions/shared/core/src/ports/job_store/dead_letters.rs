use async_trait::async_trait;

use crate::model::dead_letter::DeadLetter;
use crate::model::ids::JobGuid;
use crate::ports::PortError;

#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Records a dead letter. Idempotent: a letter that is already recorded stays unchanged.
    async fn record_dead_letter(&self, job: JobGuid, letter: &DeadLetter) -> Result<(), PortError>;

    /// Lists the dead letters of a job, at most `limit`, oldest first. If it has more, it is not defined which are
    /// listed: no more than `limit` are read.
    async fn dead_letters(&self, job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError>;
}
