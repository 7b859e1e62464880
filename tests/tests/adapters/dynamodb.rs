use rowmill_aws::adapters::dynamodb::{DynamoDbRecordStore, DynamoDbTasks};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::records::{Dataset, DatasetRecord, RecordVersion, Upserted, Writer};
use rowmill_core::ports::{PortError, RecordStore};
use rowmill_testing::contract;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::dynamodb_server::Server;

#[tokio::test]
async fn the_job_store_keeps_the_contract() {
    // A server for each check: the checks use the same identifiers, and a server remembers a transaction's token even
    // for other tables.
    contract::job_store(async || Server::start().await.job_store().await).await;
}

#[tokio::test]
async fn the_tasks_table_keeps_the_contract() {
    let server = Server::start().await;
    contract::tasks(async || DynamoDbTasks::new(server.client.clone(), server.tasks_table().await)).await;
}

#[tokio::test]
async fn the_upload_store_keeps_the_contract() {
    let server = Server::start().await;
    contract::upload_store(async || server.upload_store().await).await;
}

#[tokio::test]
async fn the_record_store_keeps_the_contract() {
    let server = Server::start().await;
    contract::record_store(async || server.record_store().await.0).await;
}

pub(crate) fn dataset() -> Dataset {
    Dataset::lasting("d", 256)
}

pub(crate) fn upsert(key: &str, fields: Value) -> DatasetRecord {
    let job_guid = JobGuid(Uuid::from_u128(1));
    let version = RecordVersion { by: Writer { job_created_ms: 1_750_000_000_000, job_guid }, row: 1 };
    DatasetRecord { key: key.to_owned(), version, fields: fields.as_object().cloned().unwrap() }
}

#[tokio::test]
async fn a_record_that_dynamodb_rejects_does_not_fail_the_others() {
    let server = Server::start().await;
    let (store, _) = server.record_store().await;
    let upserts = [
        upsert("a", json!({"n": 1})),
        upsert("b", json!({"n": 1e300})),
        upsert("", json!({"n": 1})),
        upsert(&"k".repeat(2000), json!({"n": 1})),
        upsert("c", json!({"text": "x".repeat(500_000)})),
        upsert("d", json!({"n": 2})),
    ];
    let results = store.upsert(&dataset(), &upserts).await;
    assert!(matches!(results[0], Ok(Upserted::Written)), "{results:?}");
    for result in &results[1..5] {
        assert!(matches!(result, Err(PortError::Invalid { .. })), "{results:?}");
    }
    assert!(matches!(results[5], Ok(Upserted::Written)), "{results:?}");
    assert!(store.record(&dataset(), "d").await.unwrap().is_some());
}

#[tokio::test]
async fn many_large_records_are_written_in_several_requests() {
    let server = Server::start().await;
    let (store, _) = server.record_store().await;
    let upserts: Vec<_> = (0..40).map(|n| upsert(&n.to_string(), json!({"text": "x".repeat(300_000)}))).collect();
    let results = store.upsert(&dataset(), &upserts).await;
    assert!(results.iter().all(|result| matches!(result, Ok(Upserted::Written))), "{results:?}");
}

#[tokio::test]
async fn an_unreachable_table_is_unavailable() {
    let server = Server::start().await;
    let store = DynamoDbRecordStore::new(server.client.clone(), "no-such-table".to_owned(), contract::records_clock());
    let results = store.upsert(&dataset(), &[upsert("a", json!({}))]).await;
    assert!(matches!(results[..], [Err(PortError::Unavailable { .. })]), "{results:?}");
}
