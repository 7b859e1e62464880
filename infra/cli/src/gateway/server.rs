//! Serves a gateway on a loopback port.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{BODY_MAX_BYTES, Gateway, InvokeError, message};
use crate::address::is_loopback;
use crate::progress::Progress;
use crate::terminal::escape_controls;

/// The longest time for the head of a request, and for its body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The most connections at the same time. Further ones wait.
const CONNECTIONS_MAX: usize = 256;

/// Answers every request that arrives at `listener`, until the future is dropped. Failures are told on standard error.
///
/// # Errors
///
/// If no connection can be accepted.
pub async fn serve(listener: TcpListener, gateway: Arc<Gateway>, progress: Progress) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
        let (connection, _) = listener.accept().await?;
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let gateway = Arc::clone(&gateway);
                async move { Ok::<_, Infallible>(answer(&gateway, request, progress).await.map(Full::new)) }
            });
            let mut http = http1::Builder::new();
            let http = http.timer(TokioTimer::new()).header_read_timeout(READ_TIMEOUT);
            // A client that goes away is no error of the gateway.
            let _ = http.serve_connection(TokioIo::new(connection), service).await;
            drop(slot);
        });
    }
}

async fn answer(gateway: &Gateway, request: Request<Incoming>, progress: Progress) -> Response<Bytes> {
    if !is_local(request.headers()) {
        return message(StatusCode::FORBIDDEN, "Forbidden");
    }
    let (head, body) = request.into_parts();
    let body = match timeout(READ_TIMEOUT, Limited::new(body, BODY_MAX_BYTES).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => return InvokeError::TooLarge.response(),
        Ok(Err(_)) => return message(StatusCode::BAD_REQUEST, "Bad Request"),
        Err(_) => return message(StatusCode::REQUEST_TIMEOUT, "Request Timeout"),
    };
    let request = Request::from_parts(head, body);
    gateway.answer(&request).await.unwrap_or_else(|error| {
        let call = format!("{} {}", request.method(), request.uri().path());
        progress.line(format_args!("{}: {error}", escape_controls(&call)));
        error.response()
    })
}

/// Whether a request is meant for this machine and does not come from a page of another site.
///
/// The gateway acts for its user, and any page in a browser can send requests to a loopback port. A foreign page is known
/// by its `Origin`; a name of its own that leads to this machine (DNS rebinding), by its `Host`.
fn is_local(headers: &HeaderMap) -> bool {
    let is_absent_or = |name: HeaderName, holds: fn(&str) -> bool| {
        headers.get(name).is_none_or(|value| value.to_str().is_ok_and(holds))
    };
    is_absent_or(HOST, is_loopback_authority)
        && is_absent_or(ORIGIN, |origin| origin.split_once("://").is_some_and(|(_, host)| is_loopback_authority(host)))
}

fn is_loopback_authority(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    is_loopback(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_local_with(headers: &[(HeaderName, &str)]) -> bool {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
        is_local(&headers.collect())
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        for host in ["localhost:8787", "127.0.0.1:8787", "[::1]:8787", "LOCALHOST", "127.0.0.1"] {
            assert!(is_local_with(&[(HOST, host)]), "{host}");
            assert!(is_local_with(&[(HOST, host), (ORIGIN, "http://localhost:3000")]), "{host}");
            assert!(!is_local_with(&[(HOST, host), (ORIGIN, "https://example.org")]), "{host}");
            assert!(!is_local_with(&[(HOST, host), (ORIGIN, "null")]), "{host}");
        }
        for host in ["example.org", "example.org:8787", "127.0.0.1.example.org", "localhost.example.org:1", ""] {
            assert!(!is_local_with(&[(HOST, host)]), "{host}");
        }
    }
}
