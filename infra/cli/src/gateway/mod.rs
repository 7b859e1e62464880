//! The API without an HTTP API: each request invokes the function that answers its route.
//!
//! A [`Gateway`] does what API Gateway's HTTP API does: it finds the route, makes the event (payload format 2.0), and
//! turns the function's answer into an HTTP response. The client calls it directly, and [`serve`] puts it on a port.

mod answer;
mod event;
mod server;
#[cfg(test)]
mod server_tests;

use std::error::Error;
use std::time::Duration;

use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::primitives::Blob;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use hyper::{Request, Response, StatusCode};
use rowmill_api::routes;
use rowmill_core::model::blocks::OPERATOR_FOR;
use rowmill_core::model::ids::Owner;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::aws::{Target, sdk_config};
use crate::terminal::{escape_controls, innermost};
pub use answer::message;
pub use server::serve;

/// The longest time for an answer, as API Gateway allows an HTTP API.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest body, as API Gateway allows an HTTP API. Lambda's limit of 6 MB for an event may be reached before.
pub const BODY_MAX_BYTES: usize = 10 * 1024 * 1024;

/// Validity of the claims made for an owner: longer than a request.
const CLAIMS_SECONDS: i64 = 300;

/// Invokes the functions of a stack for requests to its API.
pub struct Gateway {
    lambda: aws_sdk_lambda::Client,
    stack_name: String,
    /// Where the functions are, for messages.
    place: String,
    /// The caller, as an authorizer names it. Without one, the functions see a request without an authorizer.
    authorizer: Option<Value>,
}

/// Error of a token that cannot name the caller.
#[derive(Debug, thiserror::Error)]
#[error(
    "ROWMILL_TOKEN is not a JSON Web Token: it needs three parts with dots between them, the second one JSON in base64url"
)]
pub struct BadToken;

#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    #[error("there is no function {function} at {place}: check --stack-name, and that the stack is deployed")]
    NoFunction { function: String, place: String },
    #[error("{function} is throttled: too many requests at the same time")]
    Throttled { function: String },
    #[error("the request is longer than Lambda accepts (6 MB): announce the file instead of sending it in the body")]
    TooLarge,
    #[error("{function} gave no answer within {} s", ANSWER_TIMEOUT.as_secs())]
    TimedOut { function: String },
    /// The function threw an error or died.
    #[error("{function} failed: {reason}; its log has the cause")]
    Failed { function: String, reason: String },
    /// The function's answer is not an HTTP response.
    #[error("{function} gave an answer that is not an HTTP response: {source}")]
    NoResponse {
        function: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("cannot invoke {function} at {place}: {reason}")]
    Call { function: String, place: String, reason: String },
}

impl InvokeError {
    /// True if the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Throttled { .. } | Self::TimedOut { .. } | Self::Failed { .. } | Self::Call { .. } => true,
            Self::NoFunction { .. } | Self::TooLarge | Self::NoResponse { .. } => false,
        }
    }

    /// The response that an HTTP API gives in this case.
    pub fn response(&self) -> Response<Bytes> {
        match self {
            Self::Throttled { .. } | Self::TimedOut { .. } => {
                message(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable")
            }
            Self::TooLarge => message(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large"),
            Self::NoFunction { .. } | Self::Failed { .. } | Self::NoResponse { .. } | Self::Call { .. } => {
                message(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
            }
        }
    }
}

impl Gateway {
    /// A gateway to the functions of a stack, without a caller. Nothing is called yet.
    pub async fn connect(target: &Target, stack_name: &str) -> Self {
        let lambda = aws_sdk_lambda::Client::new(&sdk_config(target).await);
        let place = match target {
            Target::Emulator { endpoint_url } => endpoint_url.clone(),
            Target::Aws { .. } => "AWS".to_owned(),
        };
        Self { lambda, stack_name: stack_name.to_owned(), place, authorizer: None }
    }

    /// The same gateway for the caller that `token` names.
    ///
    /// # Errors
    ///
    /// [`BadToken`] if it is not a JSON Web Token. Its signature is not checked: anyone who may invoke the functions
    /// may name any caller, and AWS decides who may.
    pub fn for_caller(self, token: &str) -> Result<Self, BadToken> {
        Ok(Self { authorizer: Some(with_claims(&claims_of(token)?)), ..self })
    }

    /// The same gateway for an owner of jobs, with this scope. As with [`for_caller`](Self::for_caller), AWS decides
    /// who may.
    pub fn for_owner(&self, owner: &Owner, scope: &str) -> Self {
        // The owner of every job of a stack without an issuer. No token may name it.
        let is_nobody = owner.0 == Owner::LOCAL;
        let exp = (jiff::Timestamp::now().as_second() + CLAIMS_SECONDS).to_string();
        let claims = [("sub", owner.0.clone()), ("exp", exp), ("scope", scope.to_owned())];
        let claims = claims.map(|(name, claim)| (name.to_owned(), Value::String(claim))).into_iter().collect();
        self.with((!is_nobody).then(|| with_claims(&claims)))
    }

    /// The same gateway for an operator of the stack who acts for an owner: the owner's limits and blocks do not hold.
    pub fn as_operator(&self, owner: &Owner) -> Self {
        self.with(Some(json!({ "lambda": { OPERATOR_FOR: owner.0 } })))
    }

    fn with(&self, authorizer: Option<Value>) -> Self {
        let (lambda, stack_name, place) = (self.lambda.clone(), self.stack_name.clone(), self.place.clone());
        Self { lambda, stack_name, place, authorizer }
    }

    /// Where the functions are: the endpoint of an emulator, or `AWS`.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Answers a request as the HTTP API would.
    ///
    /// # Errors
    ///
    /// See [`InvokeError`]; [`InvokeError::response`] is what an HTTP API answers then.
    pub async fn answer(&self, request: &Request<Bytes>) -> Result<Response<Bytes>, InvokeError> {
        let Some((route, parameters)) = routes::find(request.method().as_str(), request.uri().path()) else {
            return Ok(message(StatusCode::NOT_FOUND, "Not Found"));
        };
        if request.body().len() > BODY_MAX_BYTES {
            return Err(InvokeError::TooLarge);
        }
        let event = event::event(request, route, &parameters, self.authorizer.as_ref());
        let function = format!("{}-{}", self.stack_name, route.function);
        let payload = Blob::new(serde_json::to_vec(&event).expect("an event is JSON"));
        let invocation = self.lambda.invoke().function_name(&function).payload(payload).send();
        let output = match timeout(ANSWER_TIMEOUT, invocation).await {
            Err(_) => return Err(InvokeError::TimedOut { function }),
            Ok(Err(error)) => return Err(self.failure(function, &error)),
            Ok(Ok(output)) => output,
        };
        let payload = output.payload.unwrap_or_else(|| Blob::new(Vec::new())).into_inner();
        if let Some(kind) = output.function_error {
            return Err(InvokeError::Failed { function, reason: reason_of(&kind, &payload) });
        }
        answer::response(&payload).map_err(|source| InvokeError::NoResponse { function, source })
    }

    fn failure<E>(&self, function: String, error: &E) -> InvokeError
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let place = self.place.clone();
        match error.code() {
            Some("ResourceNotFoundException") => InvokeError::NoFunction { function, place },
            Some("TooManyRequestsException") => InvokeError::Throttled { function },
            Some("RequestTooLargeException" | "RequestEntityTooLargeException") => InvokeError::TooLarge,
            _ => InvokeError::Call { function, place, reason: call_reason(error) },
        }
    }
}

/// Why Lambda cannot be called: its own code and message, or else the last cause.
///
/// The SDK's whole chain of causes may show the request, with the rows and claims in it. It must not reach a terminal
/// or a log.
fn call_reason<E>(error: &E) -> String
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => escape_controls(&format!("{code}: {message}")),
        (Some(code), None) => escape_controls(code),
        (None, _) => innermost(error),
    }
}

/// The text of a function's error: its type, and its message if it has one.
fn reason_of(kind: &str, payload: &[u8]) -> String {
    let error: Value = serde_json::from_slice(payload).unwrap_or_default();
    match error["errorMessage"].as_str() {
        Some(message) => escape_controls(&format!("{kind}: {message}")),
        None => escape_controls(kind),
    }
}

/// The authorizer of a token with these claims.
fn with_claims(claims: &Map<String, Value>) -> Value {
    json!({ "jwt": { "claims": claims, "scopes": null } })
}

/// The claims of a JSON Web Token. API Gateway gives them to a function as texts.
fn claims_of(token: &str) -> Result<Map<String, Value>, BadToken> {
    let [_, payload, _] = token.trim().split('.').collect::<Vec<_>>()[..] else { return Err(BadToken) };
    let json = BASE64_URL_SAFE_NO_PAD.decode(payload).map_err(|_| BadToken)?;
    let claims: Map<String, Value> = serde_json::from_slice(&json).map_err(|_| BadToken)?;
    let text = |value: Value| match value {
        Value::String(text) => Value::String(text),
        other => Value::String(other.to_string()),
    };
    Ok(claims.into_iter().map(|(name, value)| (name, text(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_the_caller_by_its_claims() {
        let payload = BASE64_URL_SAFE_NO_PAD.encode(json!({"sub": "user-7", "exp": 7}).to_string());
        let claims = claims_of(&format!("e30.{payload}.c2ln\n")).unwrap();
        assert_eq!(Value::Object(claims), json!({"sub": "user-7", "exp": "7"}));
        for wrong in ["", "a.b", "e30.!.x", "e30.W10.x", "a.b.c.d"] {
            assert!(claims_of(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_failed_call_shows_its_cause_and_never_the_request() {
        for endpoint_url in ["http://127.0.0.1:9", "nonsense"] {
            let target = Target::Emulator { endpoint_url: endpoint_url.to_owned() };
            let gateway = Gateway::connect(&target, "rowmill").await;
            let request = Request::post("/api/uploads").header("content-type", "text/csv");
            let error = gateway.answer(&request.body(Bytes::from_static(b"secret row")).unwrap()).await.unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with(&format!("cannot invoke rowmill-upload at {endpoint_url}: ")), "{text}");
            assert!(text.len() < 200 && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn an_error_of_a_function_says_what_lambda_reports() {
        assert_eq!(reason_of("Unhandled", br#"{"errorMessage": "out of memory"}"#), "Unhandled: out of memory");
        assert_eq!(reason_of("Unhandled", br#"{"errorMessage": "\u001b[2J\n"}"#), r"Unhandled: \u{1b}[2J\n");
        assert_eq!(reason_of("Unhandled", b""), "Unhandled");
    }
}
