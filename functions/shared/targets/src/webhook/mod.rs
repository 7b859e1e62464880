//! The call of a web service: `POST` with JSON, signed, to an address that was checked.
//!
//! | what the service answers | what it means |
//! |---|---|
//! | 2xx | the answer, at most 6 MiB |
//! | 307, 308 | the same call once more, at another URL; at most three times |
//! | 408, 425, 429, 5xx but 500 | busy; `Retry-After` says until when |
//! | 500 | failed |
//! | anything else | refused |
//! | nothing in time, a broken connection | no answer |
//!
//! Neither proxies from the environment nor cookies are used, and nothing that is answered is decompressed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use rowmill_core::ports::{ANSWER_MAX_BYTES, Clock, Target, TargetError, TargetRequest};

pub use endpoint::{Endpoint, UrlRefused};

use crate::lookup::{AddressRefused, CheckedLookup, Lookup};
use crate::retry_after::retry_after;
use crate::signature::{SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookSecret, idempotency_key};

mod endpoint;

/// How often a call is sent on to another URL.
const REDIRECTS_MAX: usize = 3;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a connection is kept for the next call. Short, since a frozen process does not notice that it has ended.
const IDLE: Duration = Duration::from_secs(5);

/// What all webhooks of a process share.
pub struct WebhookClient {
    public: Client,
    private_too: Client,
    secret: WebhookSecret,
    clock: Arc<dyn Clock>,
}

impl WebhookClient {
    /// A client that signs with this secret and finds hosts by this lookup.
    ///
    /// # Errors
    /// Where TLS cannot be set up.
    pub fn new(secret: WebhookSecret, lookup: Arc<dyn Lookup>, clock: Arc<dyn Clock>) -> Result<Self, reqwest::Error> {
        // Somebody else may have installed one before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = |private_too| {
            Client::builder()
                .dns_resolver(CheckedLookup { lookup: Arc::clone(&lookup), private_too })
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .no_proxy()
                .referer(false)
                .connect_timeout(CONNECT)
                .pool_idle_timeout(IDLE)
                .user_agent(concat!("rowmill/", env!("CARGO_PKG_VERSION")))
                .build()
        };
        Ok(Self { public: client(false)?, private_too: client(true)?, secret, clock })
    }

    fn http(&self, private_too: bool) -> &Client {
        if private_too { &self.private_too } else { &self.public }
    }
}

/// A web service as a target.
pub struct WebhookTarget {
    client: Arc<WebhookClient>,
    endpoint: Endpoint,
    timeout: Duration,
}

impl WebhookTarget {
    /// The service at this endpoint, which has so long to answer.
    pub const fn new(client: Arc<WebhookClient>, endpoint: Endpoint, timeout: Duration) -> Self {
        Self { client, endpoint, timeout }
    }

    async fn answer(&self, body: Bytes, key: &str) -> Result<Vec<u8>, TargetError> {
        let mut endpoint = self.endpoint.clone();
        for _ in 0..=REDIRECTS_MAX {
            let response = self.send(&endpoint, body.clone(), key).await?;
            match response.status() {
                status if status.is_success() => return read(response).await,
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                    endpoint = endpoint.redirected(location(&response)?).map_err(|refused| {
                        TargetError::refused(format!("it redirects to a URL that will not do: {refused}"))
                    })?;
                }
                status => return Err(self.refusal(status, &response)),
            }
        }
        Err(TargetError::refused(format!("it redirects more than {REDIRECTS_MAX} times")))
    }

    async fn send(&self, endpoint: &Endpoint, body: Bytes, key: &str) -> Result<Response, TargetError> {
        let timestamp = self.client.clock.now().as_second();
        let signature = self.client.secret.sign(timestamp, &body);
        let request = self
            .client
            .http(endpoint.allows_private())
            .post(endpoint.url().clone())
            .header(CONTENT_TYPE, "application/json")
            .header(TIMESTAMP_HEADER, timestamp)
            .header(SIGNATURE_HEADER, signature)
            .header("idempotency-key", key)
            .body(body);
        request.send().await.map_err(no_answer)
    }

    fn refusal(&self, status: StatusCode, response: &Response) -> TargetError {
        let told = format!("status {}", status.as_u16());
        match status.as_u16() {
            500 => TargetError::failed(told),
            408 | 425 | 429 | 501.. => {
                let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                TargetError::busy(told, header.and_then(|header| retry_after(header, self.client.clock.now())))
            }
            301..=303 => {
                TargetError::refused(format!("{told}, a redirect that would lose the items; use the final URL"))
            }
            _ => TargetError::refused(told),
        }
    }
}

#[async_trait]
impl Target for WebhookTarget {
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        let body =
            serde_json::to_vec(request).map_err(|_| TargetError::refused("the items cannot be written as JSON"))?;
        let key = idempotency_key(request.items.iter().map(|item| item.item_identifier.as_str()));
        let answer = tokio::time::timeout(self.timeout, self.answer(body.into(), &key)).await;
        let answer = answer.unwrap_or_else(|_| {
            Err(TargetError::silent(format!("there was no answer within {} s", self.timeout.as_secs_f32())))
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
    url.ok_or_else(|| TargetError::refused("it redirects to no URL"))
}

/// Reads the body as far as it may go.
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
    let told = match (error.is_connect(), error.is_timeout()) {
        (_, true) => "the connection took too long",
        (true, false) => "no connection comes about",
        (false, false) => "the connection broke off",
    };
    // A URL may hold what is nobody's business.
    TargetError::unreachable(told, error.without_url())
}
