//! Logging in at an OpenID provider: authorization code with PKCE, and a redirect to this machine (RFC 8252).

mod callback;
mod provider;
mod tokens;

use std::io;
use std::time::Duration;

use oauth2::{AuthUrl, AuthorizationCode, CsrfToken, PkceCodeChallenge, RedirectUrl, RefreshToken, Scope, TokenUrl};
use reqwest::Url;
use tokio::time::timeout;

pub(crate) use tokens::private_folder;
pub use tokens::{Login, Logins};

use callback::{Callback, CallbackError};
use provider::{Answered, Provider, ProviderError, client, send};

/// Maximum time for a person to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10 * 60);

#[derive(Debug, Clone)]
pub struct LoginRequest {
    /// The issuer's URL, as in the template parameter `JwtIssuer`.
    pub issuer: String,
    /// The client that is registered there for this command.
    pub client_id: String,
    /// The scopes to ask for, beside `openid`.
    pub scopes: Vec<String>,
    /// The audience to ask for. Some providers need it to issue a token for an API.
    pub audience: Option<String>,
    /// The port of the redirect to 127.0.0.1; 0 for any free one.
    pub port: u16,
}

#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error("cannot receive the redirect on port {port} of 127.0.0.1: {source}; --port chooses another one")]
    Port {
        port: u16,
        #[source]
        source: io::Error,
    },
    /// The provider sent the person back without a code.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    #[error("nobody logged in within {} minutes", LOGIN_TIMEOUT.as_secs() / 60)]
    TimedOut,
    /// The tokens cannot be kept.
    #[error("cannot use `{}`: {source}", .path.display())]
    Store {
        path: std::path::PathBuf,
        #[source]
        source: io::Error,
    },
    /// The token has expired, and the provider gave nothing to renew it with.
    #[error("the login for {api} has expired; log in again: rowmill login --url {api}")]
    Expired { api: String },
}

/// Logs in. `open` shows the provider's page to the person.
pub async fn log_in(request: &LoginRequest, open: impl FnOnce(&Url)) -> Result<Login, LoginError> {
    let provider = Provider::discover(&request.issuer).await?;
    let callback =
        Callback::listen(request.port).await.map_err(|source| LoginError::Port { port: request.port, source })?;
    let redirect = RedirectUrl::from_url(callback.url().clone());
    let client = client(&request.client_id)
        .set_auth_uri(AuthUrl::from_url(provider.authorization_endpoint.clone()))
        .set_token_uri(TokenUrl::from_url(provider.token_endpoint.clone()))
        .set_redirect_uri(redirect);
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let scopes = request.scopes.iter().map(|scope| Scope::new(scope.clone()));
    let mut page = client
        .authorize_url(CsrfToken::new_random)
        .add_scope(Scope::new("openid".to_owned()))
        .add_scopes(scopes)
        .set_pkce_challenge(challenge);
    if let Some(audience) = &request.audience {
        page = page.add_extra_param("audience", audience);
    }
    let (page, state) = page.url();
    open(&page);
    let code = timeout(LOGIN_TIMEOUT, callback.code(state.secret())).await.map_err(|_| LoginError::TimedOut)??;
    let answer = client
        .exchange_code(AuthorizationCode::new(code))
        .set_pkce_verifier(verifier)
        .request_async(&send)
        .await
        .map_err(|error| ProviderError::refused(&request.issuer, &error))?;
    Ok(Login::of(&provider, &request.client_id, Answered::of(&request.issuer, &answer)?, None))
}

/// The same login with a new token.
async fn renew(api: &str, login: &Login) -> Result<Login, LoginError> {
    let expired = || LoginError::Expired { api: api.to_owned() };
    let refresh = login.refresh_token.clone().ok_or_else(expired)?;
    let provider = Provider::discover(&login.issuer).await?;
    let answer = client(&login.client_id)
        .set_token_uri(TokenUrl::from_url(provider.token_endpoint.clone()))
        .exchange_refresh_token(&RefreshToken::new(refresh.clone()))
        .request_async(&send)
        .await;
    match answer {
        Ok(answer) => {
            let answered = Answered::of(&login.issuer, &answer)?;
            Ok(Login::of(&provider, &login.client_id, answered, Some(refresh)))
        }
        // The provider no longer knows this login.
        Err(oauth2::RequestTokenError::ServerResponse(_)) => Err(expired()),
        Err(error) => Err(ProviderError::refused(&login.issuer, &error).into()),
    }
}

#[cfg(test)]
mod tests;
