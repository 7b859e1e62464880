//! Callers that an operator has blocked.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lru::LruCache;
use parking_lot::Mutex;

use crate::model::blocks::Principal;
use crate::ports::{Block, Blocks, Clock, PortResult};

/// Time for which a process remembers that a caller is blocked or not. A block is effective in all processes after this
/// time.
pub const REMEMBERED_FOR: Duration = Duration::from_secs(30);

/// Maximum number of callers a process remembers.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Tells whether a caller is blocked. It reads a caller's block at most every [`REMEMBERED_FOR`].
pub struct BlockCheck {
    blocks: Arc<dyn Blocks>,
    clock: Arc<dyn Clock>,
    known: Mutex<LruCache<Principal, (Timestamp, Option<Block>)>>,
}

impl BlockCheck {
    pub fn new(blocks: Arc<dyn Blocks>, clock: Arc<dyn Clock>) -> Self {
        Self { blocks, clock, known: Mutex::new(LruCache::new(REMEMBERED_MAX)) }
    }

    pub async fn block(&self, principal: &Principal) -> PortResult<Option<Block>> {
        let now = self.clock.now();
        let known = self.known.lock().get(principal).cloned();
        if let Some((_, block)) = known.filter(|(until, _)| *until > now) {
            return Ok(block);
        }
        let block = self.blocks.block(principal).await?;
        let mut known = self.known.lock();
        known.put(principal.clone(), (now + REMEMBERED_FOR, block.clone()));
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_memory::{InMemoryQuotas, ManualClock};
    use crate::model::ids::Owner;

    #[tokio::test]
    async fn a_block_and_its_end_are_effective_within_a_minute() {
        let (quotas, clock) = (Arc::new(InMemoryQuotas::default()), Arc::new(ManualClock::default()));
        let check = BlockCheck::new(quotas.clone(), clock.clone());
        let me = Principal::Owner(Owner("me".into()));
        assert_eq!(check.block(&me).await.unwrap(), None);
        let block = Block { at: clock.now(), reason: None };
        for set in [Some(block), None] {
            quotas.set_block(me.clone(), set.clone());
            assert_ne!(check.block(&me).await.unwrap(), set, "the earlier answer is remembered");
            clock.advance(REMEMBERED_FOR);
            assert_eq!(check.block(&me).await.unwrap(), set);
        }
        assert!(REMEMBERED_FOR < Duration::from_secs(60));
    }
}
