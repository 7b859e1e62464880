//! Calls to a web service: a signed `POST` with a JSON body, to a checked address.
//!
//! | response | meaning |
//! |---|---|
//! | 202, if the target has `async` | the service answers later |
//! | 2xx | the answer, at most 6 MiB |
//! | 307, 308 | redirect: the same call is signed for the new URL and sent there; at most three times, and only to the hosts that the target allows |
//! | 408, 425, 429, 5xx except 500 | busy; honours `Retry-After` |
//! | 500 | failed |
//! | any other status | refused |
//! | timeout or broken connection | no answer |
//!
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};
use rowmill_core::ports::{ACCEPTED, ANSWER_MAX_BYTES, Clock, Target, TargetError, TargetRequest};

pub use endpoint::{Endpoint, UrlRefused};

use crate::clients::CheckedClients;
use crate::lookup::{AddressRefused, Lookup};
use crate::retry_after::retry_after;
use crate::signature::{
    IDEMPOTENCY_KEY_HEADER, SIGNATURE_HEADER, SignedCall, SigningKeys, TIMESTAMP_HEADER, WEBHOOK_ID_HEADER,
    WEBHOOK_SIGNATURE_HEADER, WEBHOOK_TIMESTAMP_HEADER, idempotency_key, webhook_id,
};

mod endpoint;

/// Maximum number of redirects that a call follows.
const REDIRECTS_MAX: usize = 3;

/// The HTTP clients and the clock that all webhooks of a process share.
pub struct WebhookClient {
    clients: CheckedClients,
    clock: Arc<dyn Clock>,
}

impl WebhookClient {
    /// A client that resolves hosts with this lookup.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new(lookup: Arc<dyn Lookup>, clock: Arc<dyn Clock>) -> Result<Self, reqwest::Error> {
        Ok(Self { clients: CheckedClients::new(&lookup, None)?, clock })
    }
}

pub struct WebhookTarget {
    client: Arc<WebhookClient>,
    endpoint: Endpoint,
    keys: SigningKeys,
    timeout: Duration,
}

impl WebhookTarget {
    /// The service at this endpoint, whose calls are signed with these keys. `timeout` covers a whole call, redirects
    /// included.
    pub const fn new(client: Arc<WebhookClient>, endpoint: Endpoint, keys: SigningKeys, timeout: Duration) -> Self {
        Self { client, endpoint, keys, timeout }
    }

    /// The answer to a call. `may_be_later`: the service may accept the items with `202`, and answer them later.
    async fn answer(&self, body: Bytes, key: &str, may_be_later: bool) -> Result<Vec<u8>, TargetError> {
        let mut endpoint = self.endpoint.clone();
        let id = webhook_id(&body);
        for _ in 0..=REDIRECTS_MAX {
            let response = self.send(&endpoint, body.clone(), key, &id).await?;
            match response.status() {
                StatusCode::ACCEPTED if may_be_later => return Ok(ACCEPTED.to_vec()),
                status if status.is_success() => return read(response).await,
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                    endpoint = endpoint.redirected(location(&response)?).map_err(|refused| {
                        TargetError::refused(format!("it redirects to a URL that is not allowed: {refused}"))
                    })?;
                }
                status => return Err(self.refusal(status, &response)),
            }
        }
        Err(TargetError::refused(format!("it redirects more than {REDIRECTS_MAX} times")))
    }

    async fn send(&self, endpoint: &Endpoint, body: Bytes, key: &str, id: &str) -> Result<Response, TargetError> {
        let timestamp = self.client.clock.now().as_second();
        let (host, path) = (endpoint.host_header(), endpoint.path_and_query());
        let call =
            SignedCall { timestamp, host: &host, path: &path, idempotency_key: key, webhook_id: id, body: &body };
        let (signature, standard) = (self.keys.sign(&call), self.keys.sign_standard(&call));
        let request = self
            .client
            .clients
            .to(endpoint.allows_private())
            .post(endpoint.url().clone())
            .header(CONTENT_TYPE, "application/json")
            .header(TIMESTAMP_HEADER, timestamp)
            .header(SIGNATURE_HEADER, signature)
            .header(IDEMPOTENCY_KEY_HEADER, key)
            .header(WEBHOOK_ID_HEADER, id)
            .header(WEBHOOK_TIMESTAMP_HEADER, timestamp)
            .header(WEBHOOK_SIGNATURE_HEADER, standard)
            .body(body);
        request.send().await.map_err(no_answer)
    }

    fn refusal(&self, status: StatusCode, response: &Response) -> TargetError {
        let detail = format!("status {}", status.as_u16());
        match status.as_u16() {
            500 => TargetError::failed(detail),
            408 | 425 | 429 | 501.. => {
                let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                TargetError::busy(detail, header.and_then(|header| retry_after(header, self.client.clock.now())))
            }
            301..=303 => {
                TargetError::refused(format!("{detail}: this redirect drops the request body; configure the final URL"))
            }
            _ => TargetError::refused(detail),
        }
    }
}

#[async_trait]
impl Target for WebhookTarget {
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        let body =
            serde_json::to_vec(request).map_err(|_| TargetError::refused("the items cannot be written as JSON"))?;
        let key = match &request.cancel {
            None => idempotency_key(request.items.iter().map(|item| item.item_identifier.as_str())),
            // No item is called so: a cancel is another request than the call that it cancels.
            Some(cancel) => {
                let name = format!("cancel {}", cancel.attempt);
                idempotency_key([&name].into_iter().chain(cancel.item_identifiers).map(String::as_str))
            }
        };
        let answer = tokio::time::timeout(self.timeout, self.answer(body.into(), &key, request.task.is_some())).await;
        let answer = answer.unwrap_or_else(|_| {
            Err(TargetError::no_answer(format!("there was no answer within {} s", self.timeout.as_secs_f32())))
        });
        if let Err(error) = &answer {
            let host = self.endpoint.url().host_str().unwrap_or_default();
            tracing::warn!(
                webhook.host = host, job.id = %request.job_guid, error = error as &dyn std::error::Error, "webhook call failed"
            );
        }
        answer
    }
}

fn location(response: &Response) -> Result<Url, TargetError> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let url = location.and_then(|location| response.url().join(location).ok());
    url.ok_or_else(|| TargetError::refused("it redirects without a valid URL"))
}

/// Reads the body, up to [`ANSWER_MAX_BYTES`].
async fn read(mut response: Response) -> Result<Vec<u8>, TargetError> {
    let too_long = || TargetError::bad_answer(format!("it is longer than {ANSWER_MAX_BYTES} bytes"));
    if response.content_length().is_some_and(|length| length > ANSWER_MAX_BYTES as u64) {
        return Err(too_long());
    }
    let mut answer = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(no_answer)? {
        if answer.len() + bytes.len() > ANSWER_MAX_BYTES {
            return Err(too_long());
        }
        answer.extend_from_slice(&bytes);
    }
    Ok(answer)
}

fn no_answer(error: reqwest::Error) -> TargetError {
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        if error.is::<AddressRefused>() {
            return TargetError::refused(format!("{AddressRefused}; see `allowPrivate`"));
        }
        cause = error.source();
    }
    let detail = match (error.is_connect(), error.is_timeout()) {
        (_, true) => "the connection timed out",
        (true, false) => "the connection cannot be opened",
        (false, false) => "the connection was closed early",
    };
    // The URL may contain secrets.
    TargetError::unreachable(detail, !error.is_connect(), error.without_url())
}
