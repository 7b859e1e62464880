//! The redirect back from the provider, received on a port of this machine.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::Url;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// The path of the redirect.
const PATH: &str = "/callback";

/// Maximum time for a browser to send its request.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Callback {
    listener: TcpListener,
    url: Url,
}

/// Why the provider's redirect has no code.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    #[error("the issuer refused the login: {0}")]
    Refused(String),
    /// No connection can be accepted any more.
    #[error("cannot receive the redirect")]
    Accept(#[source] io::Error),
}

impl Callback {
    /// Listens on this port of 127.0.0.1; 0 is any free one.
    pub async fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let url = format!("http://{}{PATH}", listener.local_addr()?);
        Ok(Self { listener, url: url.parse().expect("a URL") })
    }

    /// Address the provider redirects to.
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// The code of the redirect with this state. Any other request is refused and changes nothing.
    pub async fn code(self, state: &str) -> Result<String, CallbackError> {
        let (found, mut first) = mpsc::channel(1);
        let (base, state) = (self.url, Arc::<str>::from(state));
        loop {
            let connection = tokio::select! {
                Some(code) = first.recv() => return code,
                connection = self.listener.accept() => connection.map_err(CallbackError::Accept)?.0,
            };
            let (base, state, found) = (base.clone(), Arc::clone(&state), found.clone());
            tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| {
                    let outcome = outcome(&base, &request, &state);
                    let found = found.clone();
                    async move {
                        let answer = page(outcome.as_ref());
                        if let Some(code) = outcome {
                            // Only the first one is taken.
                            let _ = found.try_send(code);
                        }
                        Ok::<_, Infallible>(answer)
                    }
                });
                let mut http = http1::Builder::new();
                let http = http.timer(TokioTimer::new()).header_read_timeout(READ_TIMEOUT).keep_alive(false);
                // A browser that goes away is no error.
                let _ = http.serve_connection(TokioIo::new(connection), service).await;
            });
        }
    }
}

/// The outcome of the login by a request; `None` if it is not the redirect.
fn outcome(base: &Url, request: &Request<Incoming>, state: &str) -> Option<Result<String, CallbackError>> {
    read(&base.join(&request.uri().to_string()).ok()?, state)
}

fn read(url: &Url, state: &str) -> Option<Result<String, CallbackError>> {
    let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    if url.path() != PATH || value("state").as_deref() != Some(state) {
        return None;
    }
    match (value("code"), value("error")) {
        (Some(code), None) => Some(Ok(code)),
        (_, Some(error)) => {
            let why = value("error_description").map_or(error.clone(), |why| format!("{error}: {why}"));
            Some(Err(CallbackError::Refused(why)))
        }
        (None, None) => None,
    }
}

fn page(outcome: Option<&Result<String, CallbackError>>) -> Response<Full<Bytes>> {
    let (status, text) = match outcome {
        Some(Ok(_)) => (StatusCode::OK, "You are logged in. You can close this page.\n"),
        Some(Err(_)) => (StatusCode::OK, "You are not logged in. The command says why.\n"),
        None => (StatusCode::NOT_FOUND, "Not found\n"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_redirect_with_its_state_counts() {
        let read = |target: &str| read(&format!("http://127.0.0.1:1{target}").parse().unwrap(), "s1");
        assert_eq!(read("/callback?code=c%201&state=s1").unwrap().unwrap(), "c 1");
        for other in
            ["/callback?code=c1", "/callback?code=c1&state=s2", "/callback?state=s1", "/other?code=c1&state=s1"]
        {
            assert!(read(other).is_none(), "{other}");
        }
        let refused = read("/callback?error=access_denied&error_description=no&state=s1").unwrap().unwrap_err();
        assert_eq!(refused.to_string(), "the issuer refused the login: access_denied: no");
    }
}
