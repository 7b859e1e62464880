use async_trait::async_trait;

use crate::model::checkpoint::Checkpoint;
use crate::model::ids::JobGuid;
use crate::model::permit::{Permit, PermitSeen};
use crate::ports::PortError;

/// The [permits](crate::model::permit) of job types.
#[async_trait]
pub trait Permits: Send + Sync {
    /// The permits of a type that were taken and not given back, by number.
    async fn permits(&self, job_type: &str) -> Result<Vec<Permit>, PortError>;

    /// Moves a checkpoint as [`move_checkpoint`](crate::ports::Checkpoints::move_checkpoint) does, and takes a permit for
    /// the run that moves it, in one transaction. Conditions: as there, and the permit is as seen. Returns whether it is
    /// done: now, or earlier with the reply lost.
    async fn lease_with_permit(
        &self,
        job: JobGuid,
        leased: &Checkpoint,
        permit: &PermitSeen,
    ) -> Result<bool, PortError>;

    /// Gives a permit back. Condition: it is as seen.
    async fn give_permit_back(&self, job_type: &str, seen: &Permit) -> Result<(), PortError>;
}
