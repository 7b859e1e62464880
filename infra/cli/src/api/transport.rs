//! The two ways to the API: over HTTP, or by invoking its functions.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{Request, Response};
use reqwest::Url;
use tokio::time::timeout;

use super::ApiError;
use crate::address::{self, is_http};
use crate::gateway::Gateway;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The origin of requests that go through a gateway. It is never resolved.
const GATEWAY_ORIGIN: &str = "http://localhost/";

/// A way to the API.
pub enum Transport {
    /// The stack's HTTP API.
    Http {
        http: reqwest::Client,
        base: Url,
        /// `Authorization` of every request.
        token: Option<HeaderValue>,
    },
    /// The functions themselves.
    Gateway {
        gateway: Gateway,
        /// The address below which it takes requests. It stands for no host.
        base: Url,
    },
}

impl Transport {
    /// The API at `base`.
    ///
    /// # Errors
    ///
    /// [`ApiError::Address`] if `base` is not an `http` or `https` address, or if `token` would travel unencrypted to
    /// another machine.
    pub fn http(base: &str, token: Option<&str>) -> Result<Self, ApiError> {
        let unusable = |reason: &str| ApiError::Address { base: base.to_owned(), reason: reason.to_owned() };
        let url = Url::parse(base.trim()).map_err(|error| unusable(&error.to_string()))?;
        if !is_http(&url) {
            return Err(unusable("it does not begin with http:// or https://"));
        }
        if token.is_some() && url.scheme() == "http" && !is_loopback(&url) {
            return Err(unusable("there is a token for it, which would be sent unencrypted"));
        }
        let token = token
            .map(|token| {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
                    .map_err(|_| unusable("the token for it is not a bearer token"))?;
                value.set_sensitive(true);
                Ok(value)
            })
            .transpose()?;
        Ok(Self::Http { http: http_client(&url)?, base: url, token })
    }

    pub fn gateway(gateway: Gateway) -> Self {
        Self::Gateway { gateway, base: Url::parse(GATEWAY_ORIGIN).expect("a URL") }
    }

    /// The address below which the API's paths are.
    pub fn base(&self) -> &Url {
        match self {
            Self::Http { base, .. } | Self::Gateway { base, .. } => base,
        }
    }

    /// The name of this API among others: its address, or the place of its functions.
    pub fn server(&self) -> String {
        match self {
            Self::Http { base, .. } => base.as_str().trim_end_matches('/').to_owned(),
            Self::Gateway { gateway, .. } => gateway.place().to_owned(),
        }
    }

    /// Sends a request, whose path and query are below [`Transport::base`].
    ///
    /// # Errors
    ///
    /// The [`ApiError`] if there is no complete answer within `limit`. `call` names the request in it.
    pub async fn send(
        &self,
        call: &'static str,
        mut request: Request<Bytes>,
        limit: Duration,
    ) -> Result<Response<Bytes>, ApiError> {
        match self {
            Self::Http { http, token, .. } => {
                if let Some(token) = token {
                    request.headers_mut().insert(AUTHORIZATION, token.clone());
                }
                let lost = |error| self.lost(call, limit, error);
                let mut request = reqwest::Request::try_from(request).map_err(lost)?;
                *request.timeout_mut() = Some(limit);
                let answer = http.execute(request).await.map_err(lost)?;
                let (status, headers) = (answer.status(), answer.headers().clone());
                let mut response = Response::new(answer.bytes().await.map_err(lost)?);
                (*response.status_mut(), *response.headers_mut()) = (status, headers);
                Ok(response)
            }
            Self::Gateway { gateway, .. } => match timeout(limit, gateway.answer(&request)).await {
                Ok(answer) => answer.map_err(|source| ApiError::Invoke { call, source: Box::new(source) }),
                Err(_) => Err(ApiError::TimedOut { call, origin: gateway.place().to_owned(), within: limit }),
            },
        }
    }

    fn lost(&self, call: &'static str, within: Duration, error: reqwest::Error) -> ApiError {
        let origin = self.base().origin().ascii_serialization();
        if error.is_timeout() && !error.is_connect() {
            return ApiError::TimedOut { call, origin, within };
        }
        ApiError::Unreachable { call, origin, source: error.without_url() }
    }
}

/// An HTTP client for `target`: TLS by rustls with ring, no redirects, a bounded wait for connections.
pub(crate) fn http_client(target: &Url) -> Result<reqwest::Client, ApiError> {
    // Another part of the process may have been first; it installs the same provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        let builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("rowmill/", env!("CARGO_PKG_VERSION")));
        // A proxy of the environment cannot reach this machine's loopback addresses.
        if is_loopback(target) { builder.no_proxy() } else { builder }
    };
    match builder().build() {
        // A machine without root certificates can still speak plain HTTP to its own local stack.
        Err(_) if target.scheme() == "http" => builder().tls_certs_only([]).build(),
        built => built,
    }
    .map_err(ApiError::Client)
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    address::is_loopback(host) || host.ends_with(".localhost")
}
