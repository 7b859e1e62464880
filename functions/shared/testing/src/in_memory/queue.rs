use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use super::lock;
use rowmill_core::model::messages::Grouped;
use rowmill_core::ports::{Deliveries, PortError, Queue};

/// A queue that keeps messages until they are taken. It holds none back.
#[derive(Debug)]
pub struct InMemoryQueue<M>(Mutex<Vec<M>>);

impl<M> Default for InMemoryQueue<M> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<M> InMemoryQueue<M> {
    /// Takes all messages, in the order in which they were sent.
    pub fn take(&self) -> Vec<M> {
        std::mem::take(&mut *lock(&self.0))
    }
}

#[async_trait]
impl<M: Grouped + Clone + Send + Sync> Queue<M> for InMemoryQueue<M> {
    async fn send_later(&self, messages: &[M], _: Duration) -> Result<(), PortError> {
        lock(&self.0).extend_from_slice(messages);
        Ok(())
    }

    async fn backlog(&self) -> Result<u64, PortError> {
        Ok(lock(&self.0).len() as u64)
    }
}

/// Records which messages were postponed, and for how long.
#[derive(Debug, Default)]
pub struct InMemoryDeliveries(Mutex<Vec<(String, Duration)>>);

impl InMemoryDeliveries {
    /// Takes the receipts of the postponed messages, with the time of each.
    pub fn take(&self) -> Vec<(String, Duration)> {
        std::mem::take(&mut *lock(&self.0))
    }
}

#[async_trait]
impl Deliveries for InMemoryDeliveries {
    async fn postpone(&self, receipt: &str, by: Duration) -> Result<(), PortError> {
        lock(&self.0).push((receipt.to_owned(), by));
        Ok(())
    }
}
