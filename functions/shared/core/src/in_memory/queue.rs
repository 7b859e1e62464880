use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use super::lock;
use crate::model::messages::Grouped;
use crate::ports::{Deliveries, PortError, Queue};

/// A queue that keeps what was sent until it is taken.
#[derive(Debug)]
pub struct InMemoryQueue<M>(Mutex<Vec<M>>);

impl<M> Default for InMemoryQueue<M> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<M> InMemoryQueue<M> {
    /// Takes everything sent so far, in the order it was sent.
    pub fn take(&self) -> Vec<M> {
        std::mem::take(&mut *lock(&self.0))
    }
}

#[async_trait]
impl<M: Grouped + Clone + Send + Sync> Queue<M> for InMemoryQueue<M> {
    async fn send(&self, messages: &[M]) -> Result<(), PortError> {
        lock(&self.0).extend_from_slice(messages);
        Ok(())
    }

    async fn backlog(&self) -> Result<u64, PortError> {
        Ok(lock(&self.0).len() as u64)
    }
}

/// Remembers what was postponed, and for how long.
#[derive(Debug, Default)]
pub struct InMemoryDeliveries(Mutex<Vec<(String, Duration)>>);

impl InMemoryDeliveries {
    /// Takes the receipts of what was postponed so far, and for how long each was.
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
