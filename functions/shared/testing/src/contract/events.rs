//! The contract of [`Events`].

use std::collections::BTreeSet;
use std::ops::Deref;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{at, run_checks};
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::job_event::{EventItems, JobEvent, SCHEMA_VERSION};
use rowmill_core::ports::Events;

/// A bus whose events a test can take.
pub trait Listener: Deref<Target: Events> {
    /// Takes the events published since the last call: the detail type of each and its detail as JSON.
    fn heard(&self) -> impl Future<Output = Vec<(String, Value)>>;
}

/// Checks an [`Events`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn events<S: Listener>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        a_published_event_is_received,
        events_of_several_requests_are_all_received,
        publishing_no_events_does_nothing
    );
}

fn event(attempt: u32, status: Status) -> JobEvent {
    let items = EventItems { item_count: 6, items_succeeded: 3, items_failed: 2, items_skipped: 1 };
    JobEvent {
        schema_version: SCHEMA_VERSION,
        event_id: format!("job/{attempt}/{}", status.as_str()),
        job_guid: JobGuid(Uuid::from_u128(7)),
        job_type: "import".into(),
        owner: Owner("größe of Rome".into()),
        file_guid: Some(FileGuid(Uuid::from_u128(8))),
        attempt,
        status,
        outcome: status.is_terminal().then_some(JobOutcome::Partial),
        at: at(5),
        created_at: at(0),
        items: status.is_terminal().then_some(items),
        error: None,
        metadata: json!({ "quote": "\"ä\"" }).as_object().cloned(),
    }
}

async fn a_published_event_is_received(bus: &impl Listener) {
    for (status, detail_type) in [(Status::Running, "Rowmill Job Started"), (Status::Completed, "Rowmill Job Ended")] {
        let event = event(1, status);
        let published = bus.publish(std::slice::from_ref(&event)).await;
        assert!(matches!(published[..], [Ok(())]), "{published:?}");
        let expected = serde_json::to_value(&event).expect("an event is JSON");
        assert_eq!(bus.heard().await, [(detail_type.to_owned(), expected)]);
    }
}

async fn events_of_several_requests_are_all_received(bus: &impl Listener) {
    let events: Vec<_> = (1..=64).map(|attempt| event(attempt, Status::Running)).collect();
    let published = bus.publish(&events).await;
    assert!(published.len() == 64 && published.iter().all(Result::is_ok), "{published:?}");
    let heard = bus.heard().await;
    let attempts: BTreeSet<u64> = heard.iter().filter_map(|(_, detail)| detail["attempt"].as_u64()).collect();
    assert_eq!(attempts, (1..=64).collect(), "each at least once");
}

async fn publishing_no_events_does_nothing(bus: &impl Listener) {
    assert!(bus.publish(&[]).await.is_empty());
    assert!(bus.heard().await.is_empty());
}
