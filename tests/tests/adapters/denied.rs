//! A call that no policy allows is a missing permission for every adapter, and no outage.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::served::{JSON, answer, body, served};
use bytes::Bytes;
use jiff::Timestamp;
use rowmill_aws::adapters::dynamodb::{DynamoDbJobStore, DynamoDbRecordStore, DynamoDbUploadStore};
use rowmill_aws::adapters::eventbridge::EventBridgeEvents;
use rowmill_aws::adapters::s3::S3Objects;
use rowmill_aws::adapters::sqs::{SqsDeliveries, SqsQueue};
use rowmill_aws::sdk::clients::Clients;
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::ports::{
    DeadLetters, Deliveries, Events, Jobs, KeyRange, MultipartObjects, Objects, PortError, PortResult, Queue, Reading,
    RecordStore, UploadStore,
};
use rowmill_testing::contract;
use rowmill_testing::fixtures;
use serde_json::{Value, json};

use crate::dynamodb::{dataset, upsert};

/// A service that gives every request the same answer.
#[derive(Clone)]
struct OneAnswer {
    status: u16,
    body: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl OneAnswer {
    fn new(status: u16, body: impl ToString) -> Self {
        Self { status, body: body.to_string(), requests: Arc::default() }
    }

    async fn clients(&self) -> Clients {
        let service = self.clone();
        let config = served(move |request| {
            service.requests.lock().unwrap().push(body(&request));
            answer(service.status, &[JSON], if request.method() == "HEAD" { "" } else { &service.body })
        });
        Clients::new(config.await)
    }
}

/// The answer of the services that speak JSON.
fn denied_in_json() -> OneAnswer {
    let message = "User: r is not authorized to perform: x on resource: y";
    OneAnswer::new(400, json!({ "__type": "com.amazon.coral.service#AccessDeniedException", "message": message }))
}

/// The answer of S3.
fn denied_in_xml() -> OneAnswer {
    OneAnswer::new(403, "<Error><Code>AccessDenied</Code><Message>User: r is not authorized</Message></Error>")
}

fn is_denied<T>(result: PortResult<T>) -> bool {
    match result {
        Err(PortError::Denied { .. }) => true,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("allowed"),
    }
}

#[tokio::test]
async fn a_denied_call_to_a_table_is_a_missing_permission() {
    let client = denied_in_json().clients().await.dynamodb();
    let jobs = DynamoDbJobStore::new(client.clone(), "jobs".to_owned(), Some("admission".to_owned()));
    let job = fixtures::job();
    assert!(is_denied(jobs.job(job.job_guid).await));
    assert!(is_denied(jobs.dead_letters(job.job_guid, 10).await));
    let uploads = DynamoDbUploadStore::new(client.clone(), "uploads".to_owned());
    let file = "00000000-0000-4000-8000-000000000001".parse().unwrap();
    assert!(is_denied(uploads.upload(file, Timestamp::UNIX_EPOCH).await));
    assert!(is_denied(uploads.mark_ready(file, "\"e\"").await));
    assert!(is_denied(uploads.remove(file).await));
    let records = DynamoDbRecordStore::new(client, "records".to_owned(), contract::records_clock());
    assert!(is_denied(records.page(&dataset(), 0, KeyRange::default(), 10, Reading::Recent).await));
    for result in records.upsert(&dataset(), &[upsert("a", json!({})), upsert("b", json!({}))]).await {
        assert!(is_denied(result));
    }
}

#[tokio::test]
async fn a_denied_statement_is_a_missing_permission_for_its_record() {
    let denied = json!({ "Error": { "Code": "AccessDenied", "Message": "not authorized" } });
    let answer = OneAnswer::new(200, json!({ "Responses": [denied] }));
    let records =
        DynamoDbRecordStore::new(answer.clients().await.dynamodb(), "records".to_owned(), contract::records_clock());
    assert!(is_denied(records.upsert(&dataset(), &[upsert("a", json!({}))]).await.remove(0)));
}

#[tokio::test]
async fn a_denied_call_to_the_bucket_is_a_missing_permission_with_and_without_an_error_document() {
    let objects = S3Objects::new(denied_in_xml().clients().await.s3(), "files".to_owned());
    assert!(is_denied(objects.head("uploads/a").await));
    assert!(is_denied(objects.read("uploads/a").await));
    assert!(is_denied(objects.read_range("uploads/a", "\"e\"", 0..1).await));
    assert!(is_denied(objects.put("uploads/a", "text/csv", Bytes::new(), None).await));
    assert!(is_denied(objects.begin_multipart("uploads/a", "text/csv").await));
    assert!(is_denied(objects.abort_multipart("uploads/a", "m").await));
    let expired = "<Error><Code>ExpiredToken</Code><Message>The token has expired</Message></Error>";
    let objects = S3Objects::new(OneAnswer::new(403, expired).clients().await.s3(), "files".to_owned());
    assert!(matches!(objects.read("uploads/a").await, Err(PortError::Unavailable { .. })));
}

#[tokio::test]
async fn a_denied_call_to_a_queue_is_a_missing_permission() {
    let client = denied_in_json().clients().await.sqs();
    let queue = SqsQueue::<SplitMessage>::new(client.clone(), "http://127.0.0.1:9/1/jobs".to_owned());
    assert!(is_denied(queue.send(&[SplitMessage::of(&fixtures::job())]).await));
    assert!(is_denied(queue.backlog().await));
    let deliveries = SqsDeliveries::new(client, "http://127.0.0.1:9/1/inbox".to_owned());
    assert!(is_denied(deliveries.postpone("r", Duration::from_secs(1)).await));
}

#[tokio::test]
async fn a_denied_call_to_the_bus_is_a_missing_permission_for_every_event() {
    let bus = EventBridgeEvents::new(denied_in_json().clients().await.eventbridge(), "jobs".to_owned());
    let results = bus.publish(&crate::eventbridge::events(2)).await;
    assert_eq!(results.len(), 2);
    assert!(results.into_iter().all(is_denied));
}

#[tokio::test]
async fn no_more_dead_letters_are_read_than_asked_for() {
    let service = OneAnswer::new(200, json!({ "Items": [] }));
    let jobs = DynamoDbJobStore::new(service.clients().await.dynamodb(), "jobs".to_owned(), None);
    assert!(jobs.dead_letters(fixtures::job().job_guid, 50).await.unwrap().is_empty());
    assert_eq!(service.requests.lock().unwrap()[0]["Limit"], 50);
}
