use std::collections::{BTreeSet, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::served::{JSON, answer, body, served, target};
use rowmill_aws::adapters::sqs::{SqsDeliveries, SqsQueue};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, Grouped};
use rowmill_core::ports::{Deliveries, PortError, Queue};
use rowmill_testing::contract::{self, Receiver};
use rowmill_testing::fixtures;
use serde_json::{Value, json};
use uuid::Uuid;

const URL: &str = "http://127.0.0.1:9/1/items";

/// A fake of SQS: accepts batches, and refuses entries as planned.
#[derive(Clone, Default)]
struct FakeSqs(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    requests: Vec<Vec<Value>>,
    taken: Vec<Value>,
    /// The answers to the next entries: none accepts it, `Some(sender_fault)` refuses it.
    refusals: VecDeque<Option<bool>>,
}

impl State {
    fn answer(&mut self, action: &str, request: &Value) -> Value {
        match action {
            "AmazonSQS.SendMessageBatch" => self.send(request),
            "AmazonSQS.GetQueueAttributes" => {
                assert_eq!(request["AttributeNames"], json!(["ApproximateNumberOfMessages"]));
                json!({"Attributes": {"ApproximateNumberOfMessages": self.taken.len().to_string()}})
            }
            "AmazonSQS.ChangeMessageVisibility" => {
                self.taken.push(request.clone());
                json!({})
            }
            other => panic!("{other} is not asked of a queue"),
        }
    }

    fn send(&mut self, request: &Value) -> Value {
        let entries = request["Entries"].as_array().cloned().unwrap_or_default();
        let (mut successful, mut failed) = (Vec::new(), Vec::new());
        for entry in &entries {
            match self.refusals.pop_front().flatten() {
                None => {
                    self.taken.push(entry.clone());
                    successful.push(json!({"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": md5_of_nothing()}));
                }
                Some(sender_fault) => {
                    failed.push(json!({"Id": entry["Id"], "Code": "InternalError", "SenderFault": sender_fault}));
                }
            }
        }
        self.requests.push(entries);
        json!({"Successful": successful, "Failed": failed})
    }
}

/// The adapter does not check it.
const fn md5_of_nothing() -> &'static str {
    "d41d8cd98f00b204e9800998ecf8427e"
}

impl FakeSqs {
    fn refusing(refusals: impl IntoIterator<Item = Option<bool>>) -> Self {
        let fake = Self::default();
        fake.0.lock().unwrap().refusals.extend(refusals);
        fake
    }

    async fn client(&self) -> aws_sdk_sqs::Client {
        let state = Arc::clone(&self.0);
        let config = served(move |request| {
            let said = state.lock().unwrap().answer(target(&request), &body(&request));
            answer(200, &[JSON], said)
        });
        aws_sdk_sqs::Client::new(&config.await)
    }

    async fn queue<M: Grouped>(&self) -> SqsQueue<M> {
        SqsQueue::new(self.client().await, URL.to_owned())
    }

    fn request_sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<_> = self.0.lock().unwrap().requests.iter().map(Vec::len).collect();
        sizes.sort_unstable();
        sizes
    }

    fn taken(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap().taken)
    }
}

struct Received {
    fake: FakeSqs,
    queue: SqsQueue<ChunkMessage>,
}

impl Deref for Received {
    type Target = SqsQueue<ChunkMessage>;

    fn deref(&self) -> &SqsQueue<ChunkMessage> {
        &self.queue
    }
}

impl Receiver for Received {
    async fn take(&self) -> Vec<ChunkMessage> {
        let bodies = self.fake.taken();
        bodies.iter().map(|entry| serde_json::from_str(entry["MessageBody"].as_str().unwrap()).unwrap()).collect()
    }
}

fn messages(count: u32, owner: &str) -> Vec<CompletionMessage> {
    let message = |attempt| CompletionMessage {
        job_guid: JobGuid(Uuid::from_u128(1)),
        attempt,
        composing: None,
        owner: Owner(owner.to_owned()),
    };
    (0..count).map(message).collect()
}

fn attempts(taken: &[Value]) -> Vec<u64> {
    let body = |entry: &Value| serde_json::from_str::<Value>(entry["MessageBody"].as_str().unwrap()).unwrap();
    let mut attempts: Vec<_> = taken.iter().map(|entry| body(entry)["attempt"].as_u64().unwrap()).collect();
    attempts.sort_unstable();
    attempts
}

#[tokio::test]
async fn the_queue_keeps_the_contract() {
    contract::queue(async || {
        let fake = FakeSqs::default();
        Received { queue: fake.queue().await, fake }
    })
    .await;
}

#[tokio::test]
async fn a_request_has_ten_messages() {
    let fake = FakeSqs::default();
    fake.queue().await.send(&messages(64, "me")).await.unwrap();
    assert_eq!(fake.request_sizes(), [4, 10, 10, 10, 10, 10, 10]);
    let taken = fake.taken();
    assert_eq!(attempts(&taken), (0..64).collect::<Vec<_>>());
    assert!(taken.iter().all(|entry| entry["MessageGroupId"] == "me"));
}

#[tokio::test]
async fn a_lane_is_a_message_group_and_a_chunk_that_is_sent_again_is_no_repeated_message() {
    let fake = FakeSqs::refusing([Some(false), None]);
    let lanes = SqsQueue::of_lanes(fake.client().await, URL.to_owned());
    let on = |job_type: &str, lane| ChunkMessage {
        job_type: Some(job_type.to_owned()),
        lane: Some(lane),
        ..fixtures::chunk_message(0, 7)
    };
    lanes.send(&[on("render", 0), on("render", 2)]).await.unwrap();
    lanes.send(&[on("render", 0), on("geo-2", 0)]).await.unwrap();
    let text = |entry: &Value, name: &str| entry[name].as_str().expect("a text").to_owned();
    let requests = fake.0.lock().unwrap().requests.clone();
    assert_eq!(requests[0][0], requests[1][0], "the retry of a refused entry is the same message");
    let sent = fake.taken();
    let mut groups: Vec<String> = sent.iter().map(|entry| text(entry, "MessageGroupId")).collect();
    groups.sort();
    assert_eq!(groups, ["geo-2#0", "render#0", "render#0", "render#2"]);
    let names: BTreeSet<String> = sent.iter().map(|entry| text(entry, "MessageDeduplicationId")).collect();
    assert_eq!(names.len(), 4, "each sending has a name of its own");
}

#[tokio::test]
async fn a_standard_queue_gets_no_names_of_messages() {
    let fake = FakeSqs::default();
    fake.queue().await.send(&messages(1, "me")).await.unwrap();
    assert_eq!(fake.taken()[0].get("MessageDeduplicationId"), None, "SQS refuses them there");
}

#[tokio::test]
async fn a_message_is_held_back_for_fifteen_minutes_at_most() {
    for (delay, seconds) in [(Duration::from_millis(1_001), 2), (Duration::from_secs(3_600), 900)] {
        let fake = FakeSqs::default();
        fake.queue().await.send_later(&messages(1, "me"), delay).await.unwrap();
        assert_eq!(fake.taken()[0]["DelaySeconds"], seconds);
    }
}

#[tokio::test]
async fn only_entries_with_a_transient_error_are_sent_again() {
    let fake = FakeSqs::refusing([None, Some(false), None, Some(false), Some(false), None]);
    fake.queue().await.send(&messages(4, "me")).await.unwrap();
    assert_eq!(attempts(&fake.taken()), [0, 1, 2, 3]);
    assert_eq!(fake.request_sizes(), [1, 2, 4]);
}

#[tokio::test]
async fn an_invalid_entry_is_not_sent_again() {
    let fake = FakeSqs::refusing([Some(true)]);
    let sent = fake.queue().await.send(&messages(1, "me")).await;
    assert!(matches!(sent, Err(PortError::Invalid { .. })), "{sent:?}");
    assert_eq!(fake.request_sizes(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_keeps_refusing_is_unavailable() {
    let fake = FakeSqs::refusing([Some(false); 100]);
    let sent = fake.queue().await.send(&messages(1, "me")).await;
    assert!(matches!(sent, Err(PortError::Unavailable { .. })), "{sent:?}");
    assert_eq!(fake.request_sizes().len(), 13);
}

#[tokio::test]
async fn a_message_is_postponed_by_its_receipt_for_twelve_hours_at_most() {
    let fake = FakeSqs::default();
    let deliveries = SqsDeliveries::new(fake.client().await, URL.to_owned());
    for (delay, seconds) in [(Duration::from_secs(900), 900), (Duration::MAX, 43_200)] {
        deliveries.postpone("r", delay).await.unwrap();
        let expected = json!({"QueueUrl": URL, "ReceiptHandle": "r", "VisibilityTimeout": seconds});
        assert_eq!(fake.taken(), [expected]);
    }
}
