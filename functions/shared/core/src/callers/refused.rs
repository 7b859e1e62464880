//! Remembers callers that have reached their limit, so that a flood of requests does not write to the store.

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use lru::LruCache;
use parking_lot::Mutex;

use crate::model::blocks::Principal;
use crate::model::request_limits::{RequestLimits, RequestsCounted};
use crate::ports::{Counted, PortError, RequestCounts, RequestToCount};

/// Maximum number of full counts a process remembers.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// The counts of a store. A caller that the store has refused is refused without it until its minute or hour ends:
/// refused requests are not counted, so the counts cannot change before.
pub struct RefusalMemory {
    store: Arc<dyn RequestCounts>,
    /// The full counts by caller and route, each with the number of its window.
    full: Mutex<LruCache<(Principal, String), (i64, RequestsCounted)>>,
}

impl RefusalMemory {
    pub fn new(store: Arc<dyn RequestCounts>) -> Self {
        Self { store, full: Mutex::new(LruCache::new(REMEMBERED_MAX)) }
    }
}

#[async_trait]
impl RequestCounts for RefusalMemory {
    async fn count(&self, request: &RequestToCount, limits: RequestLimits) -> Result<Counted, PortError> {
        let key = (request.principal.clone(), request.operation.clone());
        let known = self.full.lock().get(&key).copied();
        if let Some((number, counted)) = known
            && limits.reached(counted).is_some_and(|window| window.number(request.at) == number)
        {
            return Ok(Counted::No(counted));
        }
        let answer = self.store.count(request, limits).await?;
        if let Counted::No(counted) = answer
            && let Some(window) = limits.reached(counted)
        {
            self.full.lock().put(key, (window.number(request.at), counted));
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{Owner, RunId};
    use jiff::{SignedDuration, Timestamp};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A store whose count is full.
    struct Full(AtomicUsize);

    #[async_trait]
    impl RequestCounts for Full {
        async fn count(&self, _: &RequestToCount, limits: RequestLimits) -> Result<Counted, PortError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Counted::No(RequestsCounted { minute: limits.per_minute, hour: limits.per_minute }))
        }
    }

    #[tokio::test]
    async fn the_store_is_asked_once_for_each_window_that_is_full() {
        let store = Arc::new(Full(AtomicUsize::new(0)));
        let memory = RefusalMemory::new(store.clone());
        let begin: Timestamp = "2025-06-15T15:58:20Z".parse().unwrap();
        let asked = async |owner: &str, seconds: i64, per_hour: u32| {
            let request = RequestToCount {
                principal: Principal::Owner(Owner(owner.into())),
                operation: "createJob".into(),
                id: RunId::from_bytes([1; RunId::BYTES]),
                at: begin + SignedDuration::from_secs(seconds),
            };
            let counted = memory.count(&request, RequestLimits { per_minute: 5, per_hour }).await.unwrap();
            assert_eq!(counted, Counted::No(RequestsCounted { minute: 5, hour: 5 }));
            store.0.load(Ordering::Relaxed)
        };
        assert_eq!(asked("me", 0, 100).await, 1);
        assert_eq!(asked("me", 39, 100).await, 1, "the same minute");
        assert_eq!(asked("you", 39, 100).await, 2, "another caller");
        assert_eq!(asked("me", 40, 100).await, 3, "the next minute");
        assert_eq!(asked("hourly", 0, 5).await, 4);
        assert_eq!(asked("hourly", 99, 5).await, 4, "the same hour");
        assert_eq!(asked("hourly", 100, 5).await, 5, "the next hour");
    }
}
