//! Bounds the messages of a connection and of an owner.
//!
//! A process counts what it gets, which costs nothing and ends a client that sends in a loop. The messages of an owner
//! are spread over many processes, so those above a few are counted in the store too: exactly, with one write each.

use std::num::NonZeroUsize;
use std::sync::Arc;

use jiff::Timestamp;
use lru::LruCache;
use parking_lot::Mutex;
use rowmill_core::callers::refused::RefusalMemory;
use rowmill_core::model::blocks::Principal;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::live::{Connection, ConnectionId};
use rowmill_core::model::request_limits::{RequestLimits, Window};
use rowmill_core::ports::{Counted, Entropy, PortError, RequestCounts, RequestToCount};

/// Messages of an owner in a minute that a process takes without the store.
pub const UNCOUNTED: u32 = 60;

/// Name of the messages among the counts of requests.
const OPERATION: &str = "sendLiveMessage";

/// Maximum number of senders a process remembers.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageLimits {
    /// Messages of a connection that a process takes in a minute.
    pub per_connection: u32,
    /// Messages of an owner, beside those that are not counted.
    pub per_owner: RequestLimits,
}

impl MessageLimits {
    /// Limits far above what clients need that have so many subscriptions and connections: each subscribes and
    /// unsubscribes, and does so again after it was disconnected.
    pub fn of(subscriptions: usize, connections: usize) -> Self {
        let times = |number: usize, times: u32| u32::try_from(number).unwrap_or(u32::MAX).saturating_mul(times);
        let per_connection = times(subscriptions, 4).saturating_add(UNCOUNTED);
        let (per_minute, per_hour) = (times(connections, 12), times(connections, 120));
        let at_least = |limit: u32| limit.max(per_connection);
        Self {
            per_connection,
            per_owner: RequestLimits { per_minute: at_least(per_minute), per_hour: at_least(per_hour) },
        }
    }
}

/// Counts messages, and tells when there are too many.
pub struct MessageBounds {
    counts: RefusalMemory,
    entropy: Arc<dyn Entropy>,
    limits: MessageLimits,
    /// The minute of the last message of a sender, and its messages in it.
    seen: Mutex<LruCache<Sender, (i64, u32)>>,
}

#[derive(PartialEq, Eq, Hash)]
enum Sender {
    Connection(ConnectionId),
    Owner(Owner),
}

impl MessageBounds {
    pub fn new(counts: Arc<dyn RequestCounts>, entropy: Arc<dyn Entropy>, limits: MessageLimits) -> Self {
        let seen = Mutex::new(LruCache::new(REMEMBERED_MAX));
        Self { counts: RefusalMemory::new(counts), entropy, limits, seen }
    }

    /// Counts a message of this connection. Returns whether it is within the limits.
    pub async fn admit(&self, connection: &Connection, now: Timestamp) -> Result<bool, PortError> {
        if self.count(Sender::Connection(connection.id.clone()), now) > self.limits.per_connection {
            return Ok(false);
        }
        if self.count(Sender::Owner(connection.owner.clone()), now) <= UNCOUNTED {
            return Ok(true);
        }
        let request = RequestToCount {
            principal: Principal::Owner(connection.owner.clone()),
            operation: OPERATION.to_owned(),
            id: self.entropy.run_id(),
            at: now,
        };
        let counted = self.counts.count(&request, self.limits.per_owner).await?;
        Ok(matches!(counted, Counted::Yes(_)))
    }

    fn count(&self, sender: Sender, now: Timestamp) -> u32 {
        let (minute, mut seen) = (Window::Minute.number(now), self.seen.lock());
        let (last, messages) = seen.get_or_insert_mut(sender, || (minute, 0));
        if *last != minute {
            (*last, *messages) = (minute, 0);
        }
        *messages = messages.saturating_add(1);
        *messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_testing::in_memory::{CountingEntropy, InMemoryQuotas};
    use std::time::Duration;

    const LIMITS: MessageLimits =
        MessageLimits { per_connection: 50, per_owner: RequestLimits { per_minute: 10, per_hour: 15 } };

    fn connection(number: u32) -> Connection {
        Connection { id: ConnectionId(number.to_string()), owner: Owner("me".into()), until: Timestamp::MAX }
    }

    /// Processes that share a store.
    fn processes() -> ([MessageBounds; 2], Arc<InMemoryQuotas>) {
        let (store, entropy) = (Arc::new(InMemoryQuotas::default()), Arc::new(CountingEntropy::default()));
        let process = || MessageBounds::new(store.clone(), entropy.clone(), LIMITS);
        ([process(), process()], store.clone())
    }

    /// The messages of so many that are admitted.
    async fn admitted(bounds: &MessageBounds, messages: impl IntoIterator<Item = Connection>, now: Timestamp) -> u32 {
        let mut admitted = 0;
        for connection in messages {
            admitted += u32::from(bounds.admit(&connection, now).await.unwrap());
        }
        admitted
    }

    #[tokio::test]
    async fn a_connection_sends_so_many_messages_in_a_minute_and_no_write_is_needed() {
        let ([bounds, _], store) = processes();
        let start = Timestamp::UNIX_EPOCH;
        assert_eq!(admitted(&bounds, (0..60).map(|_| connection(1)), start).await, 50);
        assert!(bounds.admit(&connection(2), start).await.unwrap(), "another connection");
        assert_eq!(store.counted(), 0);
        assert!(bounds.admit(&connection(1), start + Duration::from_secs(60)).await.unwrap(), "the next minute");
    }

    #[tokio::test]
    async fn all_processes_together_bound_the_messages_of_an_owner() {
        let ([one, two], _) = processes();
        let start = Timestamp::UNIX_EPOCH;
        let flood = || (0..100).map(connection);
        assert_eq!(admitted(&one, flood(), start).await, UNCOUNTED + 10);
        assert_eq!(admitted(&two, flood(), start).await, UNCOUNTED, "the minute is used up");
        let minute = Duration::from_secs(60);
        assert_eq!(admitted(&one, flood(), start + minute).await, UNCOUNTED + 5, "and now the hour");
        let you = Connection { owner: Owner("you".into()), ..connection(1000) };
        assert_eq!(admitted(&one, (0..50).map(|_| you.clone()), start + minute).await, 50);
    }

    #[test]
    fn every_client_may_subscribe_to_all_it_watches_and_do_so_again() {
        let MessageLimits { per_connection, per_owner } = MessageLimits::of(50, 500);
        assert_eq!((per_connection, per_owner.per_minute, per_owner.per_hour), (260, 6000, 60_000));
        let few = MessageLimits::of(1000, 1);
        assert_eq!((few.per_connection, few.per_owner.per_minute), (4060, 4060));
    }
}
