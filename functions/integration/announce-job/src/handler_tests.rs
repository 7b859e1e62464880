use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rowmill_aws::adapters::dynamodb::RowChange;
use rowmill_core::model::job::{Awaits, Job};
use rowmill_core::model::job_event::JobEvent;
use rowmill_core::ports::{Admissions, Ceilings, Events, NewJob, PortError};
use rowmill_core::progress::waits::Waker;
use rowmill_testing::fixtures;
use rowmill_testing::in_memory::{InMemoryJobStore, InMemoryQueue};
use serde_json::{Value, json};

use crate::announce::Announcer;
use crate::handler::handle;

/// A bus that accepts the events of some jobs. For others it is unavailable, and others it rejects permanently.
#[derive(Default)]
struct Bus {
    away: Vec<u8>,
    wrong: Vec<u8>,
    taken: Mutex<Vec<String>>,
}

#[async_trait]
impl Events for Bus {
    async fn publish(&self, events: &[JobEvent]) -> Vec<Result<(), PortError>> {
        let publish = |event: &JobEvent| {
            let job = event.job_guid.0.as_bytes()[15];
            if self.away.contains(&job) {
                return Err(PortError::unavailable("publishing events", "down"));
            }
            if self.wrong.contains(&job) {
                return Err(PortError::invalid("publishing events", "malformed"));
            }
            self.taken.lock().unwrap().push(event.event_id.clone());
            Ok(())
        };
        events.iter().map(publish).collect()
    }
}

fn job(number: u8) -> String {
    format!("00000000-0000-7000-8000-0000000000{number:02x}")
}

fn image(number: u8, status: &str) -> Value {
    let mut image = json!({
        "jobId": {"S": job(number)}, "row": {"S": "job"}, "owner": {"S": "me"}, "jobType": {"S": "import"},
        "fileGuid": {"S": "00000000-0000-4000-8000-000000000001"}, "dataBytes": {"N": "10"}, "status": {"S": status},
        "attempt": {"N": "1"}, "tallies": {"N": "0"}, "dispatched": {"N": "0"}, "cursorOffset": {"N": "0"},
        "cursorRow": {"N": "1"}, "splitDone": {"BOOL": false}, "completions": {"N": "0"},
        "createdAt": {"N": "1750000000000"}, "movedAt": {"N": "1750000000123"}, "deadlineAt": {"N": "1750000999000"},
        "revision": {"N": "1"},
    });
    if status != "waiting" {
        image["startedAt"] = json!({"N": "1750000000123"});
    }
    if status == "failed" {
        image["stop"] = json!({"S": r#"{"code":"source_changed","message":"because","at":"2025-06-15T15:06:40Z"}"#});
        for name in ["succeeded", "failed", "skipped"] {
            image[name] = json!({"N": "0"});
        }
        image["finishedAt"] = json!({"N": "1750000000123"});
        image["expiresAt"] = json!({"N": "1760000000"});
    }
    image
}

fn change(number: u8, old: Value, new: Value) -> RowChange {
    let images = json!({
        "Keys": {"jobId": {"S": job(number)}, "row": {"S": "job"}}, "SequenceNumber": format!("s{number}"),
        "OldImage": old, "NewImage": new,
    });
    serde_json::from_value(json!({"dynamodb": images})).unwrap()
}

fn started(numbers: impl IntoIterator<Item = u8>) -> Vec<RowChange> {
    numbers.into_iter().map(|number| change(number, image(number, "waiting"), image(number, "running"))).collect()
}

async fn handled(bus: Bus, changes: Vec<RowChange>) -> (Result<Option<String>, PortError>, Vec<String>) {
    let (answer, taken, _) = handled_with_waiting(bus, changes).await;
    (answer, taken)
}

/// The same; and how many messages were sent to a job that waits for job 1.
async fn handled_with_waiting(
    bus: Bus,
    changes: Vec<RowChange>,
) -> (Result<Option<String>, PortError>, Vec<String>, usize) {
    let (bus, jobs) = (Arc::new(bus), Arc::new(InMemoryJobStore::default()));
    let splits = Arc::new(InMemoryQueue::default());
    let (spec, before) = (fixtures::spec(), job(1).parse().unwrap());
    let waiting = Job { awaits: Some(Awaits::Job(before)), ..fixtures::job() };
    let ceilings = Ceilings { owner: 1, job_type: 1, system: 1 };
    jobs.create(&NewJob { job: waiting, spec, ceilings, idempotency: None, dedupe: None }).await.unwrap();
    let waker = Waker { jobs, splits: splits.clone() };
    let answer = handle(&Announcer { events: bus.clone(), waker }, changes).await;
    let taken = bus.taken.lock().unwrap().clone();
    (answer, taken, splits.take().len())
}

fn running(numbers: impl IntoIterator<Item = u8>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("{}/1/running", job(number))).collect()
}

#[tokio::test]
async fn changes_are_published_in_their_order() {
    let mut changes = started([1, 2]);
    changes.push(change(1, image(1, "running"), image(1, "failed")));
    let (answer, taken) = handled(Bus::default(), changes).await;
    assert_eq!(answer.unwrap(), None);
    assert_eq!(taken, [running([1, 2]), vec![format!("{}/1/failed", job(1))]].concat());
}

#[tokio::test]
async fn jobs_that_wait_for_a_job_are_told_of_its_end_alone_also_if_no_event_is_published() {
    let told = async |change| handled_with_waiting(Bus { away: vec![1], ..Bus::default() }, vec![change]).await.2;
    assert_eq!(told(change(1, image(1, "waiting"), image(1, "running"))).await, 0);
    assert_eq!(told(change(1, image(1, "running"), image(1, "failed"))).await, 1);
    assert_eq!(told(change(2, image(2, "running"), image(2, "failed"))).await, 0);
}

#[tokio::test]
async fn the_batch_is_retried_from_the_first_change_that_was_not_published() {
    let (answer, taken) = handled(Bus { away: vec![2, 4], ..Bus::default() }, started(1..=5)).await;
    assert_eq!(answer.unwrap().as_deref(), Some("s2"));
    assert_eq!(taken, running([1, 3, 5]));
}

#[tokio::test]
async fn an_invocation_that_publishes_no_event_fails() {
    let (answer, _) = handled(Bus { away: vec![1, 2], ..Bus::default() }, started([1, 2])).await;
    assert!(matches!(answer, Err(PortError::Unavailable { .. })), "{answer:?}");
    let (answer, _) = handled(Bus { away: vec![1], ..Bus::default() }, Vec::new()).await;
    assert_eq!(answer.unwrap(), None, "no event is not a failure");
}

#[tokio::test]
async fn a_change_that_can_never_be_published_blocks_no_other() {
    let mut changes = started(1..=3);
    changes.insert(0, change(4, image(4, "waiting"), image(4, "unheard-of")));
    let (answer, taken) = handled(Bus { wrong: vec![2], ..Bus::default() }, changes).await;
    assert_eq!(answer.unwrap(), None);
    assert_eq!(taken, running([1, 3]));
}
