//! AWS services in this process: an SDK client whose requests a function answers, without a socket.

use std::fmt;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedHttpClient};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::Value;

/// The content type of the answers of DynamoDB, SQS and EventBridge.
pub const JSON: (&str, &str) = ("content-type", "application/x-amz-json-1.0");

/// An address at which nobody listens.
pub const NOWHERE: &str = "http://127.0.0.1:9";

/// A configuration for a service at this address, which is reached by this client.
pub async fn config(endpoint: &str, http: SharedHttpClient) -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(5)))
        .http_client(http)
        .load()
        .await
}

/// A configuration whose requests this function answers.
pub async fn served(answer: impl Fn(HttpRequest) -> HttpConnectorFuture + Send + Sync + 'static) -> SdkConfig {
    let connector = SharedHttpConnector::new(Served(answer));
    config(NOWHERE, http_client_fn(move |_: &HttpConnectorSettings, _: &_| connector.clone())).await
}

struct Served<F>(F);

impl<F> fmt::Debug for Served<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Served")
    }
}

impl<F: Fn(HttpRequest) -> HttpConnectorFuture + Send + Sync> HttpConnector for Served<F> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        (self.0)(request)
    }
}

/// An answer with this status, these headers and this body.
pub fn answer(status: u16, headers: &[(&'static str, &'static str)], body: impl ToString) -> HttpConnectorFuture {
    let status = status.try_into().expect("a status");
    let mut response = HttpResponse::new(status, SdkBody::from(body.to_string()));
    for (name, value) in headers {
        response.headers_mut().insert(*name, *value);
    }
    HttpConnectorFuture::ready(Ok(response))
}

/// The operation that a request asks of a service that speaks JSON: `DynamoDB_20120810.GetItem`.
pub fn target(request: &HttpRequest) -> &str {
    request.headers().get("x-amz-target").unwrap_or_default()
}

/// The body of a request; null if it is not JSON.
pub fn body(request: &HttpRequest) -> Value {
    serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default()
}
