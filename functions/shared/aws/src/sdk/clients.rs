//! The SDK's clients, one of each per process.

use std::sync::OnceLock;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;

use crate::sdk::meter::{Meter, Service};
use crate::sdk::patience::Patience;

/// Timeout for opening a connection.
const CONNECT: Duration = Duration::from_secs(3);

/// Time limit for one attempt of a request, until its response begins. S3 takes the longest: 64 MiB within a region.
const ATTEMPT: Duration = Duration::from_secs(20);

/// Timeout of a live message. Those who send give up earlier; this ends the request.
const SEND: Duration = Duration::from_secs(5);

/// Attempts of a request before the caller gets its failure.
const ATTEMPTS: u32 = 6;

/// The clients. Each is built at its first use.
#[derive(Debug)]
pub struct Clients {
    config: SdkConfig,
    api_gateway: OnceLock<aws_sdk_apigatewaymanagement::Client>,
    dynamodb: OnceLock<aws_sdk_dynamodb::Client>,
    tables: OnceLock<aws_sdk_dynamodb::Client>,
    eventbridge: OnceLock<aws_sdk_eventbridge::Client>,
    lambda: OnceLock<aws_sdk_lambda::Client>,
    s3: OnceLock<aws_sdk_s3::Client>,
    secrets_manager: OnceLock<aws_sdk_secretsmanager::Client>,
    sqs: OnceLock<aws_sdk_sqs::Client>,
}

impl Clients {
    /// Clients with the region, the credentials and the endpoint of the environment.
    pub async fn from_environment() -> Self {
        let http =
            aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let retry = RetryConfig::standard()
            .with_max_attempts(ATTEMPTS)
            .with_initial_backoff(Duration::from_millis(50))
            .with_max_backoff(Duration::from_secs(2));
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT).operation_attempt_timeout(ATTEMPT).build();
        let config = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            .retry_config(retry)
            .timeout_config(timeouts)
            .load()
            .await;
        Self::new(config)
    }

    pub const fn new(config: SdkConfig) -> Self {
        Self {
            config,
            api_gateway: OnceLock::new(),
            dynamodb: OnceLock::new(),
            tables: OnceLock::new(),
            eventbridge: OnceLock::new(),
            lambda: OnceLock::new(),
            s3: OnceLock::new(),
            secrets_manager: OnceLock::new(),
            sqs: OnceLock::new(),
        }
    }

    /// The connections of the WebSocket API with this address. Its requests are not counted: they cost what the
    /// messages cost. It never retries: who sends a message decides about that.
    pub fn connections(&self, live_url: &str) -> aws_sdk_apigatewaymanagement::Client {
        let build = || {
            let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT).operation_timeout(SEND);
            let config = aws_sdk_apigatewaymanagement::config::Builder::from(&self.config)
                .endpoint_url(management_endpoint(live_url))
                .retry_config(RetryConfig::disabled())
                .timeout_config(timeouts.build());
            aws_sdk_apigatewaymanagement::Client::from_conf(config.build())
        };
        self.api_gateway.get_or_init(build).clone()
    }

    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let build = || {
            let config = aws_sdk_dynamodb::config::Builder::from(&self.config);
            aws_sdk_dynamodb::Client::from_conf(
                config.interceptor(Meter(Service::DynamoDb)).interceptor(Patience).build(),
            )
        };
        self.dynamodb.get_or_init(build).clone()
    }

    /// DynamoDB with the tables of the application. Its requests are not counted: what they cost depends on the table. It
    /// does not wait for a throttled table longer than a few attempts: the breaker of the job type does.
    pub fn tables(&self) -> aws_sdk_dynamodb::Client {
        self.tables.get_or_init(|| aws_sdk_dynamodb::Client::new(&self.config)).clone()
    }

    pub fn eventbridge(&self) -> aws_sdk_eventbridge::Client {
        let build = || {
            let config = aws_sdk_eventbridge::config::Builder::from(&self.config);
            aws_sdk_eventbridge::Client::from_conf(config.interceptor(Meter(Service::EventBridge)).build())
        };
        self.eventbridge.get_or_init(build).clone()
    }

    /// Lambda. Its requests are not counted: their cost is that of the invoked functions.
    pub fn lambda(&self) -> aws_sdk_lambda::Client {
        self.lambda.get_or_init(|| aws_sdk_lambda::Client::new(&self.config)).clone()
    }

    pub fn s3(&self) -> aws_sdk_s3::Client {
        let build = || {
            // An endpoint other than AWS's own is an emulator, which has no host name for the bucket.
            let endpoint_of_s3 = std::env::var_os("AWS_ENDPOINT_URL_S3");
            let force_path_style = self.config.endpoint_url().is_some() || endpoint_of_s3.is_some();
            let config = aws_sdk_s3::config::Builder::from(&self.config).force_path_style(force_path_style);
            aws_sdk_s3::Client::from_conf(config.interceptor(Meter(Service::S3)).interceptor(Patience).build())
        };
        self.s3.get_or_init(build).clone()
    }

    /// Secrets Manager. Its requests are not counted: there are two per process.
    pub fn secrets_manager(&self) -> aws_sdk_secretsmanager::Client {
        self.secrets_manager.get_or_init(|| aws_sdk_secretsmanager::Client::new(&self.config)).clone()
    }

    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        let build = || {
            let config = aws_sdk_sqs::config::Builder::from(&self.config);
            aws_sdk_sqs::Client::from_conf(config.interceptor(Meter(Service::Sqs)).interceptor(Patience).build())
        };
        self.sqs.get_or_init(build).clone()
    }
}

/// The endpoint of the management API of a WebSocket API with this address: `https:` in place of `wss:`.
fn management_endpoint(live_url: &str) -> String {
    match live_url.strip_prefix("ws") {
        Some(rest) => format!("http{rest}"),
        None => live_url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_management_api_is_at_the_same_address() {
        let at = "wss://a1.execute-api.eu-west-1.amazonaws.com/live";
        assert_eq!(management_endpoint(at), "https://a1.execute-api.eu-west-1.amazonaws.com/live");
        let local = "ws://127.0.0.1:4566/_aws/execute-api/a1/live";
        assert_eq!(management_endpoint(local), "http://127.0.0.1:4566/_aws/execute-api/a1/live");
    }
}
