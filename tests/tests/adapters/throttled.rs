//! A throttled request is repeated as long as its invocation has time, and the time is virtual. Only then the message
//! is given back.

use std::time::Duration;

use jiff::Timestamp;
use rowmill_aws::adapters::dynamodb::{DynamoDbItemTable, DynamoDbJobStore, DynamoDbRecordStore};
use rowmill_aws::sdk::patience;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::records::Upserted;
use rowmill_core::ports::{
    Admissions, Created, ItemTable, Jobs, PortError, PortResult, RecordStore, TableItem, Tallies,
};
use rowmill_testing::contract;
use serde_json::json;
use tokio::time::Instant;

use crate::contended_server::ContendedServer;
use crate::dynamodb::{dataset, upsert};
use crate::dynamodb_server::{create_job_tables, create_table};
use crate::lost_replies::new_job;

/// The default of `ProcessTimeoutSeconds`.
const INVOCATION: Duration = Duration::from_secs(90);

async fn world() -> (ContendedServer, DynamoDbJobStore, DynamoDbRecordStore) {
    let server = ContendedServer::start();
    let client = server.client().await;
    let (jobs, admission) = create_job_tables(&client, 0).await;
    create_table(&client, "records", &["bucket", "key"]).await;
    let records = DynamoDbRecordStore::new(client.clone(), "records".to_owned(), contract::records_clock());
    (server, DynamoDbJobStore::new(client, jobs, Some(admission)), records)
}

/// Works for an invocation. Returns the result, and how long it took.
async fn invoked<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    let result = patience::until(Timestamp::now() + INVOCATION, work).await;
    (result, begun.elapsed())
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_is_repeated_until_it_is_accepted() {
    let (server, jobs, records) = world().await;
    let new = new_job();
    assert_eq!(jobs.create(&new).await.unwrap(), Created::New);
    let job = new.job.job_guid;

    server.throttle(seconds(60));
    let (read, time) = invoked(jobs.job(job)).await;
    assert_eq!(read.unwrap().job_guid, job);
    assert!((seconds(60)..seconds(62)).contains(&time), "{time:?}");

    server.throttle(seconds(60));
    let (folded, time) = invoked(jobs.set_final_tallies(job, 1, 7)).await;
    assert!(folded.is_ok(), "{folded:?}");
    assert!((seconds(60)..seconds(62)).contains(&time), "{time:?}");

    server.throttle(seconds(60));
    let (taken, time) = invoked(jobs.taken(&Owner("me".into()), "validate")).await;
    assert_eq!(taken.unwrap().owner.active, 1, "keys that were left unprocessed");
    assert!((seconds(60)..seconds(62)).contains(&time), "{time:?}");

    server.throttle(seconds(60));
    let rows: Vec<_> = (0..60).map(|n| upsert(&n.to_string(), json!({}))).collect();
    let (written, time) = invoked(records.upsert(&dataset(), &rows)).await;
    assert!(written.iter().all(|written| matches!(written, Ok(Upserted::Written))), "{written:?}");
    assert!((seconds(60)..seconds(62)).contains(&time), "statements of a batch: {time:?}");
}

#[tokio::test(start_paused = true)]
async fn it_is_given_up_when_the_invocation_must_answer() {
    let (server, jobs, records) = world().await;
    server.throttle(seconds(1000));
    let (read, time) = invoked(jobs.job(new_job().job.job_guid)).await;
    assert!(matches!(read, Err(PortError::Unavailable { .. })), "{read:?}");
    assert!((seconds(86)..seconds(89)).contains(&time), "{time:?}");
    let (written, time) = invoked(records.upsert(&dataset(), &[upsert("a", json!({}))])).await;
    assert!(matches!(written[..], [Err(PortError::Unavailable { .. })]), "{written:?}");
    assert!((seconds(86)..seconds(89)).contains(&time), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_does_not_wait_for_a_throttled_table() {
    let (server, jobs, _) = world().await;
    server.throttle(seconds(1000));
    let begun = Instant::now();
    assert!(matches!(jobs.job(new_job().job.job_guid).await, Err(PortError::Unavailable { .. })));
    assert!(begun.elapsed() < seconds(3), "{:?}", begun.elapsed());
}

/// Else the breaker of its job type would never hear of it.
#[tokio::test(start_paused = true)]
async fn no_invocation_waits_for_a_throttled_table_of_the_application() {
    let (server, ..) = world().await;
    create_table(&server.client().await, "orders", &["id"]).await;
    let table = DynamoDbItemTable::new(server.clients().await.tables(), "orders".to_owned());
    let item = |n: u64| {
        let version = upsert("", json!({})).version;
        TableItem { version, attributes: json!({ "id": n.to_string() }).as_object().cloned().unwrap() }
    };
    let items: Vec<TableItem> = (0..60).map(item).collect();
    server.throttle(seconds(1000));
    let (results, time) = invoked(table.put(&items)).await;
    let is_unavailable = |result: &PortResult<Upserted>| matches!(result, Err(PortError::Unavailable { .. }));
    assert!(results.len() == 60 && results.iter().all(is_unavailable), "{results:?}");
    assert!(time < seconds(8), "one wait for all of them: {time:?}");
}
