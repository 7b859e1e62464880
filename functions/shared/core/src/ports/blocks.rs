use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::blocks::Principal;
use crate::ports::PortError;

/// The callers that an operator has blocked. `rowmill block` writes them.
#[async_trait]
pub trait Blocks: Send + Sync {
    async fn block(&self, principal: &Principal) -> Result<Option<Block>, PortError>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Start of the block.
    pub at: Timestamp,
    pub reason: Option<String>,
}
