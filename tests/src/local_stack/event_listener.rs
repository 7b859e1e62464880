//! Another system that hears of jobs: a queue behind a rule of the event bus.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use aws_sdk_eventbridge::types::Target;
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::{Value, json};

use super::{LocalStack, PATIENCE};

static EARS: AtomicU32 = AtomicU32::new(0);

/// A queue that hears every event of every job from now on.
pub struct EventListener<'a> {
    stack: &'a LocalStack,
    url: String,
    heard: Mutex<Vec<Value>>,
}

impl LocalStack {
    pub async fn listen(&self) -> EventListener<'_> {
        let name = format!("ears-{}", EARS.fetch_add(1, Ordering::Relaxed));
        let queue = self.sqs.create_queue().queue_name(&name).send().await.expect("a queue");
        let url = queue.queue_url.expect("the queue's URL");
        let wanted = QueueAttributeName::QueueArn;
        let attributes = self.sqs.get_queue_attributes().queue_url(&url).attribute_names(wanted.clone());
        let attributes = attributes.send().await.expect("the queue answers").attributes.unwrap_or_default();
        // The bus delivers to a queue only if the queue's own policy allows it.
        let policy = json!({ "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow", "Principal": { "Service": "events.amazonaws.com" },
            "Action": "sqs:SendMessage", "Resource": attributes[&wanted],
        }]});
        let allow = self.sqs.set_queue_attributes().queue_url(&url);
        let allow = allow.attributes(QueueAttributeName::Policy, policy.to_string());
        allow.send().await.expect("the queue takes its policy");
        let rule = self.eventbridge.put_rule().name(&name).event_pattern(r#"{"source":["rowmill"]}"#);
        rule.send().await.expect("a rule");
        let target = Target::builder().id("ears").arn(&attributes[&wanted]).build().expect("a target");
        self.eventbridge.put_targets().rule(&name).targets(target).send().await.expect("the rule takes it");
        EventListener { stack: self, url, heard: Mutex::default() }
    }
}

impl EventListener<'_> {
    /// The events of a job by their names, when so many different ones have been heard. Each may have come more than
    /// once.
    pub async fn heard(&self, job: &str, count: usize) -> BTreeMap<String, Value> {
        let started = Instant::now();
        loop {
            let events = self.of_job(job);
            if events.len() >= count {
                return events;
            }
            assert!(started.elapsed() < PATIENCE, "{count} events of {job} expected, heard {events:?}");
            self.receive().await;
        }
    }

    async fn receive(&self) {
        let sqs = &self.stack.sqs;
        let request = sqs.receive_message().queue_url(&self.url).max_number_of_messages(10).wait_time_seconds(1);
        for message in request.send().await.expect("the queue answers").messages.unwrap_or_default() {
            let event = serde_json::from_str(message.body.as_deref().expect("a body")).expect("JSON");
            self.heard.lock().expect("nobody panics with it").push(event);
            let receipt = message.receipt_handle.expect("a receipt");
            sqs.delete_message().queue_url(&self.url).receipt_handle(receipt).send().await.expect("it is gone");
        }
    }

    fn of_job(&self, job: &str) -> BTreeMap<String, Value> {
        let heard = self.heard.lock().expect("nobody panics with it");
        let of_job = heard.iter().filter(|event| event["detail"]["jobGuid"] == job);
        of_job.map(|event| (event["detail"]["eventId"].as_str().expect("a name").to_owned(), event.clone())).collect()
    }
}
