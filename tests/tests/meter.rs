//! The meter of SDK requests. This test has its own process, because the counts belong to the process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use rowmill_api::cost::Capacity;
use rowmill_aws::sdk::clients::Clients;
use rowmill_aws::sdk::meter::{self, Requests};

/// Answers each first request with an error, and then as the request asks.
#[derive(Debug, Default)]
struct Scripted(AtomicU32);

impl HttpConnector for Scripted {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let asked = request.body().bytes().is_some_and(|body| String::from_utf8_lossy(body).contains("TOTAL"));
        let (status, body) = match (self.0.fetch_add(1, Ordering::Relaxed), target) {
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
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body))))
    }
}

#[tokio::test]
async fn every_request_and_its_consumed_capacity_are_counted() {
    let connector = SharedHttpConnector::new(Scripted::default());
    let http = http_client_fn(move |_: &HttpConnectorSettings, _| connector.clone());
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url("http://127.0.0.1:9")
        .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
        .http_client(http)
        .load()
        .await;
    let clients = Clients::new(config);
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
