//! The AWS clients for a deployment, to AWS or to the endpoint of an emulator.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::{Stack, StackStatus};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
use aws_smithy_http_client::{Builder, tls};
use rowmill_core::model::ids::JobGuid;

use crate::address::is_http;

/// Region used with an emulator. Emulators serve every region, so all tools must use the same one.
const EMULATOR_REGION: &str = "us-east-1";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of one attempt of a request. The largest requests upload function packages of about 10 MB over a slow line.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// AWS, with the credentials and region of the environment, the profile or the machine's role.
    Aws {
        /// The region, if not the one of the environment.
        region: Option<String>,
        /// The profile, if not the one of the environment.
        profile: Option<String>,
    },
    /// An emulator of AWS. It gets test credentials, never those of the developer.
    Emulator {
        /// Base URL of all services.
        endpoint_url: String,
    },
}

/// The clients of one target.
#[derive(Debug, Clone)]
pub struct Aws {
    /// CloudFormation, for stacks.
    pub cloudformation: aws_sdk_cloudformation::Client,
    /// S3, for packages and templates.
    pub s3: aws_sdk_s3::Client,
    /// CloudWatch, for the metrics of a stack.
    pub cloudwatch: aws_sdk_cloudwatch::Client,
    /// DynamoDB, for table settings that an emulator's CloudFormation ignores.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// Secrets Manager, for the secret that signs the calls of webhooks.
    pub secrets_manager: aws_sdk_secretsmanager::Client,
    /// SQS, for the state of queues.
    pub sqs: aws_sdk_sqs::Client,
    /// STS, for the account number.
    pub sts: aws_sdk_sts::Client,
    pub region: String,
    target: Target,
}

/// A call to AWS that failed after all retries.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct CallFailed {
    /// The action, as a verb with its object.
    pub action: String,
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// No region is configured, and AWS has no default one.
#[derive(Debug, thiserror::Error)]
#[error("no AWS region is configured: set AWS_REGION, choose a profile that has one, or give --region")]
pub struct NoRegion;

impl Aws {
    /// Clients of `target`. Nothing is called yet.
    ///
    /// # Errors
    ///
    /// [`NoRegion`] if the target is AWS and neither the target nor the environment names a region.
    pub async fn connect(target: Target) -> Result<Self, NoRegion> {
        let config = sdk_config(&target).await;
        let region = config.region().ok_or(NoRegion)?.to_string();
        let s3 = aws_sdk_s3::config::Builder::from(&config)
            // Emulators serve buckets by path: `bucket.127.0.0.1` is not a valid host name.
            .force_path_style(matches!(target, Target::Emulator { .. }))
            .build();
        Ok(Self {
            cloudformation: aws_sdk_cloudformation::Client::new(&config),
            s3: aws_sdk_s3::Client::from_conf(s3),
            cloudwatch: aws_sdk_cloudwatch::Client::new(&config),
            dynamodb: aws_sdk_dynamodb::Client::new(&config),
            secrets_manager: aws_sdk_secretsmanager::Client::new(&config),
            sqs: aws_sdk_sqs::Client::new(&config),
            sts: aws_sdk_sts::Client::new(&config),
            region,
            target,
        })
    }

    pub const fn target(&self) -> &Target {
        &self.target
    }

    pub fn is_emulator(&self) -> bool {
        matches!(self.target, Target::Emulator { .. })
    }

    /// The stack of this name, if there is one.
    pub async fn stack(&self, name: &str) -> Result<Option<Stack>, CallFailed> {
        match self.cloudformation.describe_stacks().stack_name(name).send().await {
            Ok(answer) => {
                let mut stacks = answer.stacks.unwrap_or_default();
                Ok(stacks.pop().filter(|stack| stack.stack_status() != Some(&StackStatus::DeleteComplete)))
            }
            // CloudFormation has no error code of its own for a missing stack.
            Err(error)
                if error.code() == Some("ValidationError")
                    && error.message().is_some_and(|message| message.contains("does not exist")) =>
            {
                Ok(None)
            }
            Err(error) => Err(failed(format!("read the stack {name}"))(error)),
        }
    }

    /// URL of an object in the form that CloudFormation accepts, with the bucket in the path.
    pub fn object_url(&self, bucket: &str, key: &str) -> String {
        match &self.target {
            Target::Emulator { endpoint_url } => format!("{}/{bucket}/{key}", endpoint_url.trim_end_matches('/')),
            Target::Aws { .. } => {
                let china = if self.region.starts_with("cn-") { ".cn" } else { "" };
                format!("https://s3.{}.amazonaws.com{china}/{bucket}/{key}", self.region)
            }
        }
    }
}

/// The SDK's configuration for `target`, for clients that are not in [`Aws`].
pub async fn sdk_config(target: &Target) -> SdkConfig {
    let timeouts =
        TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_attempt_timeout(ATTEMPT_TIMEOUT).build();
    let loader = aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(4));
    match target {
        Target::Aws { region, profile } => {
            let https = Builder::new().tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring));
            let mut loader = loader.http_client(https.build_https());
            if let Some(region) = region {
                loader = loader.region(Region::new(region.clone()));
            }
            if let Some(profile) = profile {
                loader = loader.profile_name(profile);
            }
            loader.load().await
        }
        Target::Emulator { endpoint_url } => {
            let builder = Builder::new();
            let loader = if endpoint_url.starts_with("https:") {
                let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
                loader.http_client(builder.tls_provider(ring).build_https())
            } else {
                loader.http_client(builder.build_http())
            };
            let test = Credentials::new("test", "test", None, None, "rowmill emulator");
            loader
                .empty_test_environment()
                .endpoint_url(endpoint_url)
                .region(Region::new(EMULATOR_REGION))
                .credentials_provider(SharedCredentialsProvider::new(test))
                .load()
                .await
        }
    }
}

/// Parses the endpoint of an emulator, for the command line.
pub(crate) fn parse_endpoint(text: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(text).ok().filter(is_http);
    url.map(|_| text.to_owned()).ok_or_else(|| "expected a URL such as http://localhost:4566".to_owned())
}

/// Adds the action to an error: `.map_err(failed("create the bucket"))`.
pub(crate) fn failed<E>(action: impl Into<String>) -> impl FnOnce(E) -> CallFailed
where
    E: Error + Send + Sync + 'static,
{
    move |error| CallFailed { action: action.into(), source: Box::new(error) }
}

/// The key of a job's row in the table of jobs.
pub fn job_key(job_guid: JobGuid) -> HashMap<String, AttributeValue> {
    let text = |text: String| AttributeValue::S(text);
    HashMap::from([("jobId".to_owned(), text(job_guid.to_string())), ("row".to_owned(), text("job".to_owned()))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_http_url() {
        assert_eq!(parse_endpoint("http://localhost:4566"), Ok("http://localhost:4566".to_owned()));
        for wrong in ["", "nonsense", "localhost:4566", "ftp://localhost"] {
            assert!(parse_endpoint(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn an_emulator_serves_objects_by_path_under_its_own_address() {
        let aws = Aws::connect(Target::Emulator { endpoint_url: "http://127.0.0.1:4566/".into() }).await.unwrap();
        assert_eq!(aws.object_url("b", "t/1.json"), "http://127.0.0.1:4566/b/t/1.json");
    }

    #[tokio::test]
    async fn aws_serves_objects_by_path_in_their_region() {
        let target = Target::Aws { region: Some("cn-north-1".into()), profile: None };
        let aws = Aws::connect(target).await.unwrap();
        assert_eq!(aws.object_url("b", "k"), "https://s3.cn-north-1.amazonaws.com.cn/b/k");
    }
}
