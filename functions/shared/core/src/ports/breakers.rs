use async_trait::async_trait;

use crate::model::breaker::Breaker;
use crate::ports::PortError;

#[async_trait]
pub trait Breakers: Send + Sync {
    /// Reads the breaker of a job type, strongly consistent. `None` if it has none, or none any more.
    async fn breaker(&self, job_type: &str) -> Result<Option<Breaker>, PortError>;

    /// Swaps the breaker of a job type for its next revision. Condition: the stored one is at `rev - 1`, or absent if
    /// `next` is the first revision.
    async fn move_breaker(&self, job_type: &str, next: &Breaker) -> Result<BreakerMoved, PortError>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BreakerMoved {
    /// It is moved: now, or earlier with the reply lost.
    Won,
    /// Somebody else has moved it. Holds the current one, if there is one.
    Lost(Option<Breaker>),
}
