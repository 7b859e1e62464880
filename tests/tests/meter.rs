//! The meter of SDK requests. This test has its own process, because the counts belong to the process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use acceptance::served::{answer, served, target};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::presigning::PresigningConfig;
use rowmill_aws::sdk::clients::Clients;
use rowmill_aws::sdk::meter::{self, Requests};
use rowmill_core::model::cost::Capacity;

#[tokio::test]
async fn every_request_and_its_consumed_capacity_are_counted() {
    let requests = AtomicU32::new(0);
    // The first request of all is answered with an error, the others as they ask.
    let config = served(move |request| {
        let asked = request.body().bytes().is_some_and(|body| String::from_utf8_lossy(body).contains("TOTAL"));
        let (status, body) = match (requests.fetch_add(1, Ordering::Relaxed), target(&request)) {
            (0, _) => (500, r#"{"__type": "InternalServerError"}"#),
            (_, target) if target.ends_with("GetItem") && asked => {
                (200, r#"{"ConsumedCapacity": {"TableName": "t", "CapacityUnits": 0.5}}"#)
            }
            (_, target) if target.ends_with("BatchExecuteStatement") && asked => (
                200,
                r#"{"Responses": [{}], "ConsumedCapacity": [{"TableName": "t", "CapacityUnits": 2.0},
                    {"TableName": "u", "CapacityUnits": 1.0}]}"#,
            ),
            (_, target) if target.ends_with("PutItem") => (400, r#"{"__type": "ConditionalCheckFailedException"}"#),
            _ => (200, "{}"),
        };
        answer(status, &[], body)
    });
    let clients = Clients::new(config.await);
    meter::take();

    let key = AttributeValue::S("k".into());
    clients.dynamodb().get_item().table_name("t").key("k", key.clone()).send().await.unwrap();
    let statement = aws_sdk_dynamodb::types::BatchStatementRequest::builder().statement("INSERT").build().unwrap();
    clients.dynamodb().batch_execute_statement().statements(statement).send().await.unwrap();
    clients.dynamodb().put_item().table_name("t").item("k", key).send().await.unwrap_err();
    clients.sqs().list_queues().send().await.unwrap();
    clients.eventbridge().list_event_buses().send().await.unwrap();
    let hour = PresigningConfig::expires_in(Duration::from_secs(3600)).unwrap();
    clients.s3().put_object().bucket("b").key("k").presigned(hour).await.unwrap();

    let used = meter::take();
    let expected = Requests { dynamodb: 4, eventbridge: 1, s3: 0, sqs: 1 };
    assert_eq!(used.requests, expected, "a retry counts, a presigned request does not");
    assert_eq!(used.capacity, Capacity { read: 0.5, write: 4.0 }, "a failed condition costs a unit");
    assert_eq!(meter::take(), meter::Used::default());
}
