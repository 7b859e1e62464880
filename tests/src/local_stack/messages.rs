//! Messages held back, taken out of their queues and lost: states of a job that crashes leave behind.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aws_sdk_lambda::types::EventSourceMappingConfiguration;
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::Value;

use super::{LocalStack, PATIENCE, until};

/// All queues, by the names of the template's outputs.
const QUEUES: [&str; 15] = [
    "JobsQueueUrl",
    "JobsHighQueueUrl",
    "ItemsQueueUrl",
    "ItemsHighQueueUrl",
    "ItemsLowQueueUrl",
    "IsolateQueueUrl",
    "LanesQueueUrl",
    "CompletionsQueueUrl",
    "JobsDeadLetterQueueUrl",
    "ItemsDeadLetterQueueUrl",
    "LanesDeadLetterQueueUrl",
    "CompletionsDeadLetterQueueUrl",
    "InboxQueueUrl",
    "InboxDeadLetterQueueUrl",
    "AnnouncementsDeadLetterQueueUrl",
];

impl LocalStack {
    /// Stops (`false`) or starts (`true`) the delivery of messages to a function.
    pub async fn deliver_to(&self, function: &str, enabled: bool) {
        let function = self.output(function);
        let sources = self.lambda.list_event_source_mappings().function_name(function).send().await;
        for source in sources.expect("the function has sources").event_source_mappings() {
            self.switch(source, enabled).await;
        }
    }

    /// Stops (`false`) or starts (`true`) the delivery of the messages of these queues.
    pub async fn deliver_from(&self, queues: &[&str], enabled: bool) {
        let sources = self.lambda.list_event_source_mappings().send().await.expect("there are mappings");
        for queue in queues {
            let url = self.output(queue);
            let name = url.rsplit('/').next().unwrap_or(url);
            let of_queue = |arn: &str| arn.rsplit(':').next() == Some(name);
            let source = sources.event_source_mappings().iter().find(|it| it.event_source_arn().is_some_and(of_queue));
            self.switch(source.expect("the queue has a mapping"), enabled).await;
        }
    }

    async fn switch(&self, source: &EventSourceMappingConfiguration, enabled: bool) {
        let change = self.lambda.update_event_source_mapping().enabled(enabled);
        change.uuid(source.uuid().expect("a name")).send().await.expect("the mapping takes it");
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

    /// Takes a message of this job out of a queue, when there is one. Messages of other jobs are lost: that of a job
    /// which was cancelled before a function received it may still be there.
    pub async fn take_of(&self, queue: &str, job: &str) -> Value {
        loop {
            let message = self.take(queue).await;
            if message["jobGuid"] == job {
                return message;
            }
        }
    }

    /// Takes the message of a chunk, its number counted from 0, out of a queue when it is there. Other messages are
    /// lost: the sweep, which also runs by its schedule, may have sent the chunks before it again.
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

    /// Number of messages that wait or are in flight in all queues, dead-letter queues among them.
    pub async fn messages(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for queue in QUEUES {
            let request = self.sqs.get_queue_attributes().queue_url(self.output(queue));
            let answer = request.attribute_names(QueueAttributeName::All).send().await.expect("the queue answers");
            let attributes = answer.attributes.unwrap_or_default();
            let counted =
                attributes.iter().filter(|(name, _)| name.as_str().starts_with("ApproximateNumberOfMessages"));
            let count = counted.map(|(_, count)| count.parse::<u64>().expect("a number")).sum();
            counts.insert(queue, count);
        }
        counts
    }

    /// Waits until no queue holds a message any more.
    pub async fn queues_are_empty(&self) {
        until("messages are left", async || self.messages().await.values().all(|count| *count == 0)).await;
    }
}
