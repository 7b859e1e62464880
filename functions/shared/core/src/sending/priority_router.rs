//! Sends messages on the queues of their priorities.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::model::job::Priority;
use crate::model::messages::Prioritized;
use crate::ports::{PortError, Queue};

/// The queues of one kind of message, one for each priority. All senders of such messages use it.
pub struct PriorityRouter<M> {
    /// For messages of jobs with high priority.
    pub high: Arc<dyn Queue<M>>,
    /// For all that have no queue of their own.
    pub normal: Arc<dyn Queue<M>>,
    /// For messages of jobs with low priority. Without it they go with the normal ones.
    pub low: Option<Arc<dyn Queue<M>>>,
}

impl<M> PriorityRouter<M> {
    pub fn of(&self, priority: Priority) -> &dyn Queue<M> {
        match (priority, &self.low) {
            (Priority::High, _) => &*self.high,
            (Priority::Low, Some(low)) => &**low,
            (Priority::Low, None) | (Priority::Normal, _) => &*self.normal,
        }
    }
}

#[async_trait]
impl<M: Prioritized + Clone + Send + Sync> Queue<M> for PriorityRouter<M> {
    async fn send_later(&self, messages: &[M], delay: Duration) -> Result<(), PortError> {
        for priority in Priority::ALL {
            let of_priority: Vec<M> =
                messages.iter().filter(|message| message.priority() == priority).cloned().collect();
            if !of_priority.is_empty() {
                self.of(priority).send_later(&of_priority, delay).await?;
            }
        }
        Ok(())
    }

    /// The messages that wait in all of the queues.
    async fn backlog(&self) -> Result<u64, PortError> {
        let low = match &self.low {
            Some(low) => low.backlog().await?,
            None => 0,
        };
        Ok(self.high.backlog().await? + self.normal.backlog().await? + low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::in_memory::InMemoryQueue;
    use crate::model::messages::ChunkMessage;

    fn message(index: u8, priority: Priority) -> ChunkMessage {
        ChunkMessage { priority, ..fixtures::chunk_message(0, index) }
    }

    #[tokio::test]
    async fn each_message_goes_on_the_queue_of_its_priority() {
        let [high, normal, low] = [(); 3].map(|()| Arc::new(InMemoryQueue::<ChunkMessage>::default()));
        let router = PriorityRouter { high: high.clone(), normal: normal.clone(), low: Some(low.clone()) };
        let all = Priority::ALL.map(|priority| message(1, priority));
        router.send(&all).await.unwrap();
        assert_eq!(router.backlog().await.unwrap(), 3);
        for (queue, priority) in [(high, Priority::High), (normal, Priority::Normal), (low, Priority::Low)] {
            assert_eq!(router.of(priority).backlog().await.unwrap(), 1);
            assert_eq!(queue.take(), [message(1, priority)]);
        }
    }

    #[tokio::test]
    async fn without_a_queue_of_their_own_low_messages_go_with_the_normal_ones() {
        let [high, normal] = [(); 2].map(|()| Arc::new(InMemoryQueue::<ChunkMessage>::default()));
        let router = PriorityRouter { high, normal: normal.clone(), low: None };
        router.send(&[message(1, Priority::Low), message(2, Priority::Normal)]).await.unwrap();
        assert_eq!(normal.take().len(), 2);
    }
}
