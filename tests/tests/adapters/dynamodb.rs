use std::collections::HashMap;
use std::ops::Deref;

use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_aws::adapters::dynamodb::{DynamoDbRecordStore, DynamoDbTasks, bucket_of};
use rowmill_core::contract::{self, Records};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::records::{Dataset, RecordVersion, Upsert, Upserted};
use rowmill_core::ports::{PortError, RecordStore};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::dynamodb_server::Server;

/// The record store with direct access to its table.
struct Viewed<'a> {
    server: &'a Server,
    store: DynamoDbRecordStore,
    table: String,
}

impl<'a> Viewed<'a> {
    async fn new(server: &'a Server) -> Self {
        let (store, table) = server.record_store().await;
        Self { server, store, table }
    }
}

impl Deref for Viewed<'_> {
    type Target = DynamoDbRecordStore;

    fn deref(&self) -> &DynamoDbRecordStore {
        &self.store
    }
}

impl Records for Viewed<'_> {
    async fn record(&self, dataset: &Dataset, key: &str) -> Option<(String, Map<String, Value>)> {
        let request = self.server.client.get_item().table_name(&self.table).consistent_read(true);
        let bucket = AttributeValue::S(bucket_of(dataset, key));
        let request = request.key("bucket", bucket).key("key", AttributeValue::S(key.to_owned()));
        let item: HashMap<_, _> = request.send().await.unwrap().item?;
        let version = item["version"].as_s().unwrap().clone();
        Some((version, serde_dynamo::from_attribute_value(item["fields"].clone()).unwrap()))
    }
}

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
    contract::record_store(async || Viewed::new(&server).await).await;
}

pub(crate) fn dataset() -> Dataset {
    Dataset { name: "d".to_owned(), partitions: 256 }
}

pub(crate) fn upsert(key: &str, fields: Value) -> Upsert {
    let job_guid = JobGuid(Uuid::from_u128(1));
    let version = RecordVersion { job_created_ms: 1_750_000_000_000, job_guid, row: 1 };
    Upsert { key: key.to_owned(), version, fields: fields.as_object().cloned().unwrap() }
}

#[tokio::test]
async fn a_record_that_dynamodb_rejects_does_not_fail_the_others() {
    let server = Server::start().await;
    let store = Viewed::new(&server).await;
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
    assert!(store.record(&dataset(), "d").await.is_some());
}

#[tokio::test]
async fn many_large_records_are_written_in_several_requests() {
    let server = Server::start().await;
    let store = Viewed::new(&server).await;
    let upserts: Vec<_> = (0..40).map(|n| upsert(&n.to_string(), json!({"text": "x".repeat(300_000)}))).collect();
    let results = store.upsert(&dataset(), &upserts).await;
    assert!(results.iter().all(|result| matches!(result, Ok(Upserted::Written))), "{results:?}");
}

#[tokio::test]
async fn an_unreachable_table_is_unavailable() {
    let server = Server::start().await;
    let store = DynamoDbRecordStore::new(server.client.clone(), "no-such-table".to_owned());
    let results = store.upsert(&dataset(), &[upsert("a", json!({}))]).await;
    assert!(matches!(results[..], [Err(PortError::Unavailable { .. })]), "{results:?}");
}
