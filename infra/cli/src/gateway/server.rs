//! Serves a gateway on a loopback port.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::{ANSWER_TIMEOUT, BODY_MAX_BYTES, Gateway, InvokeError, message};
use crate::address::is_loopback;
use crate::progress::Progress;
use crate::terminal::cut;

/// The longest time for the head of a request, and for its body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time for a connection: the head, the body, the answer, and as long for the client to read it.
pub(super) const CONNECTION_TIMEOUT: Duration = READ_TIMEOUT.saturating_mul(3).saturating_add(ANSWER_TIMEOUT);

/// The most connections at the same time. Further ones wait.
const CONNECTIONS_MAX: usize = 256;

/// The wait after a connection that cannot be accepted, usually because the process has too many open files.
const ACCEPT_WAIT: Duration = Duration::from_millis(200);

/// The most columns that the method and path of a failed request take on standard error.
const CALL_WIDTH: usize = 200;

/// The header by which a browser says which site a request comes from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Answers every request that arrives at `listener`, until the future is dropped. Failures are told on standard error.
pub async fn serve(listener: TcpListener, gateway: Arc<Gateway>, progress: Progress) -> Infallible {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
        let (connection, _) = accepted(|| listener.accept(), progress).await;
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move {
            answer_once(connection, &gateway, progress).await;
            drop(slot);
        });
    }
}

/// The next connection. One that cannot be accepted is told and does not end the gateway: open files get closed again.
pub(super) async fn accepted<T, F>(mut accept: impl FnMut() -> F, progress: Progress) -> T
where
    F: Future<Output = io::Result<T>>,
{
    loop {
        match accept().await {
            Ok(connection) => return connection,
            Err(error) => progress.line(format_args!("cannot accept a connection: {error}")),
        }
        sleep(ACCEPT_WAIT).await;
    }
}

/// Answers the one request of a connection.
///
/// Connections are not kept: idle ones would take the slots of others.
pub(super) async fn answer_once<C>(connection: C, gateway: &Gateway, progress: Progress)
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let service =
        service_fn(
            |request| async move { Ok::<_, Infallible>(answer(gateway, request, progress).await.map(Full::new)) },
        );
    let mut http = http1::Builder::new();
    let http = http.timer(TokioTimer::new()).header_read_timeout(READ_TIMEOUT).keep_alive(false);
    // A client that goes away or does not read its answer is no error of the gateway.
    let _ = timeout(CONNECTION_TIMEOUT, http.serve_connection(TokioIo::new(connection), service)).await;
}

async fn answer(gateway: &Gateway, request: Request<Incoming>, progress: Progress) -> Response<Bytes> {
    if !is_local(request.uri(), request.headers()) {
        return message(StatusCode::FORBIDDEN, "Forbidden");
    }
    let (head, body) = request.into_parts();
    let body = match timeout(READ_TIMEOUT, whole(body)).await {
        Ok(Ok(body)) => body,
        Ok(Err(refusal)) => return refusal,
        Err(_) => return message(StatusCode::REQUEST_TIMEOUT, "Request Timeout"),
    };
    let request = Request::from_parts(head, body);
    gateway.answer(&request).await.unwrap_or_else(|error| {
        let call = format!("{} {}", request.method(), request.uri().path());
        progress.line(format_args!("{}: {error}", cut(&call, CALL_WIDTH)));
        error.response()
    })
}

/// The whole body. One that is too long is read to its end before the refusal: many clients look for an answer only
/// then.
async fn whole(mut body: Incoming) -> Result<Bytes, Response<Bytes>> {
    match Limited::new(&mut body, BODY_MAX_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            while let Some(Ok(_)) = body.frame().await {}
            Err(InvokeError::TooLarge.response())
        }
        Err(_) => Err(message(StatusCode::BAD_REQUEST, "Bad Request")),
    }
}

/// True if a request is meant for this machine and does not come from a page of another site.
///
/// The gateway acts for its user, and any page in a browser can send requests to a loopback port. A foreign page is
/// known by its `Origin`, or without one (an image, a script, a link) by `Sec-Fetch-Site`; a name of its own that leads
/// to this machine (DNS rebinding), by the `Host` or the request's URL.
pub(super) fn is_local(uri: &Uri, headers: &HeaderMap) -> bool {
    let all = |name: HeaderName, holds: fn(&str) -> bool| {
        headers.get_all(name).iter().all(|value| value.to_str().is_ok_and(holds))
    };
    uri.host().is_none_or(is_loopback)
        && all(HOST, is_loopback_authority)
        && all(ORIGIN, |origin| origin.split_once("://").is_some_and(|(_, host)| is_loopback_authority(host)))
        && (headers.contains_key(ORIGIN) || all(SEC_FETCH_SITE, |site| site != "cross-site"))
}

fn is_loopback_authority(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    is_loopback(host)
}
