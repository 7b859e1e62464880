//! An OpenID provider: what it says of itself, and its tokens.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use oauth2::basic::{
    BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse, BasicTokenType,
};
use oauth2::{
    Client, ClientId, ExtraTokenFields, HttpRequest, HttpResponse, StandardRevocableToken, StandardTokenResponse,
    TokenResponse, http,
};
use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::address::{is_http, is_loopback};
use crate::api::{ApiError, http_client};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

const ANSWER_MAX_BYTES: usize = 1024 * 1024;

/// A provider: the parts of its discovery document that matter here.
#[derive(Debug, Clone, Deserialize)]
pub struct Provider {
    /// Its own name for itself.
    pub issuer: String,
    /// Where people log in.
    pub authorization_endpoint: Url,
    /// Where a code becomes a token.
    pub token_endpoint: Url,
}

#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// It is not at a usable address.
    #[error("the issuer {issuer} cannot be used: {reason}")]
    Address {
        /// The issuer, or an endpoint of it.
        issuer: String,
        reason: String,
    },
    /// It did not answer as a provider does.
    #[error("the issuer {issuer} did not answer as an OpenID provider: {reason}")]
    Answer { issuer: String, reason: String },
    #[error("the issuer cannot be reached")]
    Unreachable(#[source] SendError),
}

impl ProviderError {
    /// The provider's refusal to issue a token. The text never has the request, which holds secrets.
    pub fn refused(issuer: &str, error: &oauth2::RequestTokenError<SendError, BasicErrorResponse>) -> Self {
        use oauth2::RequestTokenError::{Other, Parse, Request, ServerResponse};
        let reason = match error {
            ServerResponse(refusal) => format!("it refused the token: {refusal}"),
            Request(error) => match error.source() {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
            Parse(_, _) => "its answer has no token".to_owned(),
            Other(reason) => reason.clone(),
        };
        Self::Answer { issuer: issuer.to_owned(), reason }
    }
}

impl Provider {
    /// Reads the discovery document of the provider with this issuer.
    pub async fn discover(issuer: &str) -> Result<Self, ProviderError> {
        let wrong = |reason: &str| ProviderError::Answer { issuer: issuer.to_owned(), reason: reason.to_owned() };
        let document = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let address = encrypted(&document)?;
        let request = http::Request::get(address.as_str()).body(Vec::new());
        let request = request.map_err(|error| wrong(&error.to_string()))?;
        let answer = send(request).await.map_err(ProviderError::Unreachable)?;
        if !answer.status().is_success() {
            return Err(wrong(&format!("{document} is answered {}", answer.status())));
        }
        let provider: Self = serde_json::from_slice(answer.body()).map_err(|error| wrong(&error.to_string()))?;
        if provider.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(wrong(&format!("its document is that of {}", provider.issuer)));
        }
        encrypted(provider.authorization_endpoint.as_str())?;
        encrypted(provider.token_endpoint.as_str())?;
        Ok(provider)
    }
}

/// The URL, if nobody between can read what is sent to it.
fn encrypted(text: &str) -> Result<Url, ProviderError> {
    let unusable = |reason: &str| ProviderError::Address { issuer: text.to_owned(), reason: reason.to_owned() };
    let url = Url::parse(text).map_err(|error| unusable(&error.to_string()))?;
    let on_this_machine = url.host_str().is_some_and(is_loopback);
    match is_http(&url) && (url.scheme() == "https" || on_this_machine) {
        true => Ok(url),
        false => Err(unusable("it must begin with https://")),
    }
}

/// The ID token beside an access token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IdToken {
    id_token: Option<String>,
}

impl ExtraTokenFields for IdToken {}

/// A provider's answer with tokens.
pub type TokenAnswer = StandardTokenResponse<IdToken, BasicTokenType>;

/// The tokens that the API and this command use.
#[derive(Debug)]
pub struct Answered {
    /// The token for the API.
    pub token: String,
    /// Its lifetime, if the provider said so.
    pub lifetime: Option<Duration>,
    pub refresh_token: Option<String>,
}

impl Answered {
    /// The access token if it is a JSON Web Token, else the ID token: API Gateway verifies nothing else.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Answer`] if neither is one.
    pub fn of(issuer: &str, answer: &TokenAnswer) -> Result<Self, ProviderError> {
        let is_jwt = |token: &&str| token.split('.').count() == 3;
        let tokens = [Some(answer.access_token().secret().as_str()), answer.extra_fields().id_token.as_deref()];
        let token = tokens.into_iter().flatten().find(is_jwt).ok_or_else(|| ProviderError::Answer {
            issuer: issuer.to_owned(),
            reason: "neither its access token nor its ID token is a JSON Web Token".to_owned(),
        })?;
        Ok(Self {
            token: token.to_owned(),
            lifetime: answer.expires_in(),
            refresh_token: answer.refresh_token().map(|token| token.secret().clone()),
        })
    }
}

/// A client of the library for providers that may send an ID token.
pub type OidcClient = Client<
    BasicErrorResponse,
    TokenAnswer,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
>;

/// The library's client for this client id. It has no secret: a command cannot keep one.
pub fn client(id: &str) -> OidcClient {
    Client::new(ClientId::new(id.to_owned())).set_auth_type(oauth2::AuthType::RequestBody)
}

/// Why a request to a provider has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("not an address: {0}")]
    Address(String),
    /// There is no HTTP client for it.
    #[error(transparent)]
    Client(#[from] ApiError),
    #[error("no answer")]
    Lost(#[source] reqwest::Error),
    #[error("its answer has more than {ANSWER_MAX_BYTES} bytes")]
    TooLong,
}

/// Sends a request to a provider. Redirects are not followed: a code or a token must not go anywhere else.
pub async fn send(request: HttpRequest) -> Result<HttpResponse, SendError> {
    let url = Url::parse(&request.uri().to_string()).map_err(|error| SendError::Address(error.to_string()))?;
    let http = http_client(&url)?;
    let lost = |error: reqwest::Error| SendError::Lost(error.without_url());
    let mut request = reqwest::Request::try_from(request.map(Bytes::from)).map_err(lost)?;
    *request.timeout_mut() = Some(ANSWER_TIMEOUT);
    let mut answer = http.execute(request).await.map_err(lost)?;
    let mut response = HttpResponse::new(Vec::new());
    (*response.status_mut(), *response.headers_mut()) = (answer.status(), answer.headers().clone());
    while let Some(chunk) = answer.chunk().await.map_err(lost)? {
        if response.body().len() + chunk.len() > ANSWER_MAX_BYTES {
            return Err(SendError::TooLong);
        }
        response.body_mut().extend_from_slice(&chunk);
    }
    Ok(response)
}
