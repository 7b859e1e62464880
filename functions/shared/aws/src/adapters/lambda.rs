//! Lambda functions as targets of job types.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::Config;
use aws_sdk_lambda::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_lambda::operation::invoke::{InvokeError, InvokeOutput};
use aws_smithy_runtime_api::http::Response;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_smithy_types::timeout::TimeoutConfig;
use rowmill_core::ports::{Target, TargetError, TargetRequest};
use serde::Deserialize;

use crate::sdk::denied::{is_denied, report};

/// The longest name of an error that is repeated, in characters.
const ERROR_TYPE_MAX_CHARS: usize = 64;

/// A function that is invoked with items and waited for.
///
/// A function that throws has failed on the items as a whole, as with an event source mapping. One that is throttled is
/// busy; one that reaches its own time limit, or does not answer within the target's, gives no answer.
pub struct LambdaTarget {
    client: Client,
    function: String,
    timeout: Duration,
}

impl LambdaTarget {
    /// The function of this ARN, which has so long to answer.
    pub fn new(client: Client, function: impl Into<String>, timeout: Duration) -> Self {
        Self { client, function: function.into(), timeout }
    }
}

#[async_trait]
impl Target for LambdaTarget {
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        let payload =
            serde_json::to_vec(request).map_err(|_| TargetError::refused("the items cannot be written as JSON"))?;
        let timeouts =
            TimeoutConfig::builder().operation_timeout(self.timeout).operation_attempt_timeout(self.timeout).build();
        let invoke = self.client.invoke().function_name(&self.function).payload(payload.into()).customize();
        let answer = match invoke.config_override(Config::builder().timeout_config(timeouts)).send().await {
            Ok(output) => answer(output),
            Err(error) => Err(self.no_answer(error)),
        };
        if let Err(error) = &answer {
            tracing::warn!(
                target.function = self.function, job.id = %request.job_guid, error = error as &dyn std::error::Error,
                "function call failed"
            );
        }
        answer
    }
}

impl LambdaTarget {
    fn no_answer(&self, error: SdkError<InvokeError, Response>) -> TargetError {
        match &error {
            SdkError::ServiceError(context) => {
                let (code, status) = (error.code().unwrap_or("unknown error"), context.raw().status().as_u16());
                let told = format!("{code} (status {status})");
                if is_denied(Some(code)) {
                    report("calling the function of a job type", error.message());
                }
                match status {
                    408 | 409 | 425 | 429 | 500.. => TargetError::busy(told, retry_after(context.err())),
                    _ => TargetError::refused(told),
                }
            }
            SdkError::TimeoutError(_) => {
                TargetError::no_answer(format!("there was no answer within {} s", self.timeout.as_secs_f32()))
            }
            _ => {
                let cause = DisplayErrorContext(&error).to_string();
                TargetError::unreachable("the function cannot be invoked", true, cause)
            }
        }
    }
}

fn retry_after(error: &InvokeError) -> Option<Duration> {
    let InvokeError::TooManyRequestsException(throttled) = error else { return None };
    throttled.retry_after_seconds()?.parse().ok().map(Duration::from_secs)
}

/// The answer of Lambda for a function that threw.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Thrown {
    error_type: String,
    error_message: String,
}

fn answer(output: InvokeOutput) -> Result<Vec<u8>, TargetError> {
    let payload = output.payload.map(aws_smithy_types::Blob::into_inner).unwrap_or_default();
    if output.function_error.is_none() {
        return Ok(payload);
    }
    let thrown: Thrown = serde_json::from_slice(&payload).unwrap_or_default();
    if thrown.error_type == "Sandbox.Timedout" || thrown.error_message.contains("Task timed out") {
        return Err(TargetError::no_answer("the function reached its time limit"));
    }
    if thrown.error_type == "Function.ResponseSizeTooLarge" {
        return Err(TargetError::bad_answer("it is larger than Lambda takes"));
    }
    // The message may quote an item; the type is a name in the function's code.
    let fit = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':');
    let name: String = thrown.error_type.chars().filter(fit).take(ERROR_TYPE_MAX_CHARS).collect();
    Err(TargetError::failed(match name.as_str() {
        "" => "the function threw an error, see its log".to_owned(),
        name => format!("the function threw {name}, see its log"),
    }))
}

#[cfg(test)]
mod tests {
    use aws_smithy_types::Blob;
    use serde_json::json;

    use super::*;

    fn output(function_error: Option<&str>, payload: &str) -> InvokeOutput {
        let builder = InvokeOutput::builder().status_code(200).payload(Blob::new(payload));
        builder.set_function_error(function_error.map(str::to_owned)).build()
    }

    #[test]
    fn a_function_that_throws_has_failed_and_its_message_is_not_reported() {
        let thrown = json!({ "errorType": "KeyError", "errorMessage": "'row content'" }).to_string();
        let error = answer(output(Some("Unhandled"), &thrown)).unwrap_err();
        assert!(matches!(error, TargetError::Failed { .. }));
        assert!(error.to_string().contains("KeyError") && !error.to_string().contains("content"), "{error}");
        let nothing = answer(output(Some("Unhandled"), "")).unwrap_err();
        assert!(matches!(nothing, TargetError::Failed { .. }), "{nothing}");
    }

    #[test]
    fn a_function_at_its_time_limit_has_not_answered() {
        let timed_out =
            json!({ "errorMessage": "2024-01-01T00:00:00.000Z 01890a5d Task timed out after 3.00 seconds" });
        let error = answer(output(Some("Unhandled"), &timed_out.to_string())).unwrap_err();
        assert!(matches!(error, TargetError::Unreachable { .. }), "{error}");
        let timed_out =
            json!({ "errorType": "Sandbox.Timedout", "errorMessage": "RequestId: 1 Error: Task timed out" });
        let error = answer(output(Some("Unhandled"), &timed_out.to_string())).unwrap_err();
        assert!(matches!(error, TargetError::Unreachable { .. }), "{error}");
    }

    #[test]
    fn an_answer_that_is_too_large_for_lambda_is_bad() {
        let too_large = json!({ "errorType": "Function.ResponseSizeTooLarge", "errorMessage": "exceeded" }).to_string();
        assert!(matches!(answer(output(Some("Unhandled"), &too_large)), Err(TargetError::BadAnswer { .. })));
    }

    #[test]
    fn the_payload_of_a_function_is_its_answer() {
        assert_eq!(answer(output(None, "{}")).unwrap(), b"{}");
    }
}
