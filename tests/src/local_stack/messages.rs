//! Messages held back, taken out of their queues and lost: states of a job that crashes leave behind.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{LocalStack, PATIENCE};

impl LocalStack {
    /// Stops (`false`) or starts (`true`) the delivery of messages to a function.
    pub async fn deliver_to(&self, function: &str, enabled: bool) {
        let function = self.output(function);
        let sources = self.lambda.list_event_source_mappings().function_name(function).send().await;
        for source in sources.expect("the function has sources").event_source_mappings() {
            let change = self.lambda.update_event_source_mapping().enabled(enabled);
            change.uuid(source.uuid().expect("a name")).send().await.expect("the mapping takes it");
        }
    }

    /// Takes a message out of a queue, when there is one.
    pub async fn take(&self, queue: &str) -> Value {
        let started = Instant::now();
        loop {
            if let Some(message) = self.take_now(queue).await {
                return message;
            }
            assert!(started.elapsed() < PATIENCE, "no message comes to {queue}: {:?}", self.messages().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Takes a message of this job out of a queue, when there is one. Messages of other jobs are lost: that of a job which
    /// was cancelled before a function received it may still be there.
    pub async fn take_of(&self, queue: &str, job: &str) -> Value {
        loop {
            let message = self.take(queue).await;
            if message["jobGuid"] == job {
                return message;
            }
        }
    }

    /// Takes the message of a chunk, its number counted from 0, out of a queue when it is there. Other messages are lost: the
    /// sweep, which also runs by its schedule, may have sent the chunks before it again.
    pub async fn take_chunk(&self, queue: &str, job: &str, index: u64) -> Value {
        loop {
            let message = self.take_of(queue, job).await;
            if message["index"] == index {
                return message;
            }
        }
    }

    /// Takes a message out of a queue, when the sweep has sent it.
    pub async fn take_with_sweeps(&self, queue: &str) -> Value {
        let started = Instant::now();
        loop {
            self.sweep().await;
            if let Some(message) = self.take_now(queue).await {
                return message;
            }
            assert!(started.elapsed() < PATIENCE, "the sweep sends nothing to {queue}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    async fn take_now(&self, queue: &str) -> Option<Value> {
        let url = self.output(queue);
        let answer = self.sqs.receive_message().queue_url(url).send().await.expect("the queue answers");
        let message = answer.messages?.pop()?;
        let deletion = self.sqs.delete_message().queue_url(url).set_receipt_handle(message.receipt_handle);
        deletion.send().await.expect("the queue answers");
        Some(serde_json::from_str(&message.body.expect("a body")).expect("JSON"))
    }
}
