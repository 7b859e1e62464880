//! The AWS adapters keep the contracts of their ports. The services run in process: DynamoDB is `dynoxide`, S3 is
//! `s3s-fs`, and connectors stand in for SQS, EventBridge and Lambda.

mod contended_server;
mod contention;
mod denied;
mod dynamodb;
mod dynamodb_server;
mod eventbridge;
mod golden;
mod golden_samples;
mod hot_key;
mod item_table;
mod job_row;
mod lambda;
mod live;
mod lost_replies;
mod quotas;
mod s3;
mod s3_server;
mod sqs;
mod throttled;
mod usage;

use acceptance::served::config;
use aws_sdk_dynamodb::config::SharedHttpClient;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;

/// The HTTP client the functions use.
fn https_client() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
}
