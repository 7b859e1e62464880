use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use acceptance::served::{JSON, answer, body, served, target};
use jiff::Timestamp;
use rowmill_aws::adapters::eventbridge::EventBridgeEvents;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job_event::{JobEvent, SCHEMA_VERSION};
use rowmill_core::ports::{Events, PortError};
use rowmill_testing::contract::{self, Listener};
use serde_json::{Value, json};
use uuid::Uuid;

/// A fake of EventBridge: accepts events, and refuses entries as planned.
#[derive(Clone, Default)]
struct FakeEventBridge(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    requests: Vec<Vec<Value>>,
    taken: Vec<Value>,
    /// The answers to the next entries: none accepts it, a code refuses it.
    refusals: VecDeque<Option<&'static str>>,
    /// The number of next requests that fail as a whole.
    outage: usize,
}

impl State {
    fn answer(&mut self, request: &Value) -> (u16, Value) {
        let entries = request["Entries"].as_array().cloned().unwrap_or_default();
        assert!((1..=10).contains(&entries.len()), "EventBridge takes one to ten entries");
        self.requests.push(entries.clone());
        if self.outage > 0 {
            self.outage -= 1;
            return (500, json!({"__type": "InternalException"}));
        }
        let mut answers = Vec::new();
        for entry in entries {
            match self.refusals.pop_front().flatten() {
                None => {
                    self.taken.push(entry);
                    answers.push(json!({"EventId": "e"}));
                }
                Some(code) => answers.push(json!({"ErrorCode": code, "ErrorMessage": "scripted"})),
            }
        }
        let failed = answers.iter().filter(|answer| answer["ErrorCode"].is_string()).count();
        (200, json!({"FailedEntryCount": failed, "Entries": answers}))
    }
}

impl FakeEventBridge {
    fn refusing(refusals: impl IntoIterator<Item = Option<&'static str>>) -> Self {
        let fake = Self::default();
        fake.0.lock().unwrap().refusals.extend(refusals);
        fake
    }

    async fn bus(&self) -> EventBridgeEvents {
        let state = Arc::clone(&self.0);
        let config = served(move |request| {
            assert_eq!(target(&request), "AWSEvents.PutEvents");
            let (status, said) = state.lock().unwrap().answer(&body(&request));
            answer(status, &[JSON], said)
        });
        let client = aws_sdk_eventbridge::Client::new(&config.await);
        EventBridgeEvents::new(client, "jobs".to_owned())
    }

    fn request_sizes(&self) -> Vec<usize> {
        self.0.lock().unwrap().requests.iter().map(Vec::len).collect()
    }

    fn taken(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap().taken)
    }

    fn attempts_taken(&self) -> Vec<u64> {
        self.taken().iter().map(|entry| detail(entry)["attempt"].as_u64().unwrap()).collect()
    }
}

fn detail(entry: &Value) -> Value {
    serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap()
}

struct Heard {
    fake: FakeEventBridge,
    bus: EventBridgeEvents,
}

impl Deref for Heard {
    type Target = EventBridgeEvents;

    fn deref(&self) -> &EventBridgeEvents {
        &self.bus
    }
}

impl Listener for Heard {
    async fn heard(&self) -> Vec<(String, Value)> {
        let heard = |entry: &Value| (entry["DetailType"].as_str().unwrap().to_owned(), detail(entry));
        self.fake.taken().iter().map(heard).collect()
    }
}

pub(crate) fn events(count: u32) -> Vec<JobEvent> {
    let event = |attempt| JobEvent {
        schema_version: SCHEMA_VERSION,
        event_id: format!("job/{attempt}/running"),
        job_guid: JobGuid(Uuid::from_u128(1)),
        job_type: "import".into(),
        owner: Owner("me".into()),
        file_guid: Some(FileGuid(Uuid::from_u128(2))),
        attempt,
        status: Status::Running,
        outcome: None,
        at: Timestamp::from_millisecond(1_750_000_000_500).unwrap(),
        created_at: Timestamp::from_millisecond(1_750_000_000_000).unwrap(),
        items: None,
        error: None,
        metadata: None,
    };
    (0..count).map(event).collect()
}

/// The result of each event as a letter: published, unavailable, invalid.
fn ends(results: &[Result<(), PortError>]) -> String {
    let end = |result: &Result<(), PortError>| match result {
        Ok(()) => 'p',
        Err(PortError::Unavailable { .. }) => 'u',
        Err(PortError::Invalid { .. }) => 'i',
        Err(other) => panic!("{other}"),
    };
    results.iter().map(end).collect()
}

#[tokio::test]
async fn the_events_keep_the_contract() {
    contract::events(async || {
        let fake = FakeEventBridge::default();
        Heard { bus: fake.bus().await, fake }
    })
    .await;
}

#[tokio::test]
async fn an_entry_names_its_bus_its_source_and_its_time() {
    let fake = FakeEventBridge::default();
    fake.bus().await.publish(&events(1)).await;
    let entry = fake.taken().remove(0);
    assert_eq!((&entry["EventBusName"], &entry["Source"]), (&json!("jobs"), &json!("rowmill")));
    assert_eq!(entry["Time"].as_f64(), Some(1_750_000_000.5));
}

#[tokio::test]
async fn a_request_has_ten_events_in_their_order() {
    let fake = FakeEventBridge::default();
    assert_eq!(ends(&fake.bus().await.publish(&events(23)).await), "p".repeat(23));
    assert_eq!(fake.request_sizes(), [10, 10, 3]);
    assert_eq!(fake.attempts_taken(), (0..23).collect::<Vec<_>>());
}

#[tokio::test]
async fn only_entries_with_a_transient_error_are_put_again() {
    let fake = FakeEventBridge::refusing([None, Some("ThrottlingException"), None, Some("InternalFailure")]);
    assert_eq!(ends(&fake.bus().await.publish(&events(4)).await), "pppp");
    assert_eq!(fake.request_sizes(), [4, 2]);
    assert_eq!(fake.attempts_taken(), [0, 2, 1, 3]);
}

#[tokio::test]
async fn an_invalid_entry_is_not_put_again_and_the_others_are_published() {
    let fake = FakeEventBridge::refusing([None, Some("MalformedDetail"), Some("ThrottlingException")]);
    assert_eq!(ends(&fake.bus().await.publish(&events(3)).await), "pip");
    assert_eq!(fake.request_sizes(), [3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_keeps_refusing_is_unavailable_for_the_refused_events_only() {
    let always = [None].into_iter().chain(std::iter::repeat_n(Some("InternalFailure"), 100));
    let fake = FakeEventBridge::refusing(always);
    assert_eq!(ends(&fake.bus().await.publish(&events(2)).await), "pu");
    assert_eq!(fake.request_sizes().len(), 13);
}

#[tokio::test]
async fn an_outage_longer_than_the_retries_is_reported_for_each_event() {
    let fake = FakeEventBridge::default();
    fake.0.lock().unwrap().outage = 4;
    let results = fake.bus().await.publish(&events(12)).await;
    assert_eq!(ends(&results), "u".repeat(10) + "pp", "three tries a request, then the next request");
}
