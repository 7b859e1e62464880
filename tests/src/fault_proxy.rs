//! A proxy between the functions and the emulated AWS. It makes calls fail like the real AWS does: a call is refused
//! before it takes effect, or answered with an error afterwards, throttled, in conflict with a transaction, or slow. In
//! an outage, all calls are refused for a while.
//!
//! The fault of the n-th call depends only on the seed and n; which call is the n-th depends on the machine. Only the
//! functions' AWS clients use the proxy. The Lambda runtime API, the pollers of the queues and the tests do not.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fastrand::Rng;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The probability of each fault, and the latency; no faults by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// An internal error, and the call had no effect.
    pub refused: f64,
    /// An internal error instead of the answer; the call took effect.
    pub reply_lost: f64,
    /// Throttled. In a batch, every entry is throttled.
    pub throttled: f64,
    /// A single write conflicts with a transaction on its row. In a batch of statements, every statement does.
    pub conflict: f64,
    /// A transaction conflicts with another one. Transactions are rare, so this may be high.
    pub transaction_conflict: f64,
    pub latency: Duration,
}

/// The fault of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// See [`Weather::refused`].
    Refused,
    /// See [`Weather::reply_lost`].
    ReplyLost,
    /// See [`Weather::throttled`].
    Throttled,
    /// See [`Weather::conflict`] and [`Weather::transaction_conflict`].
    Conflict,
    /// Refused because of an outage, see [`FaultProxy::outage`].
    Outage,
}

/// The service and the operation of a call: `UpdateItem`, `SendMessageBatch`, `PUT`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Call {
    service: Service,
    operation: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Service {
    DynamoDb,
    EventBridge,
    Sqs,
    S3,
}

/// The proxy. It runs as long as the runtime that it was started on.
pub struct FaultProxy {
    url: String,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: String,
    client: reqwest::Client,
    seed: u64,
    state: Mutex<State>,
}

struct State {
    weather: Weather,
    outage_until: Instant,
    calls: u64,
    done: BTreeMap<(Fault, Call), u64>,
}

/// The injected faults with their counts, for a report.
#[derive(Clone, Debug)]
pub struct Injected {
    calls: u64,
    done: BTreeMap<(Fault, Call), u64>,
}

impl FaultProxy {
    /// Starts a proxy in front of this base URL, without faults. `client` sends the forwarded calls.
    ///
    /// # Panics
    /// If it cannot listen on a local port.
    pub fn start(upstream: &str, client: reqwest::Client, seed: u64) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener can be non-blocking");
        let url = format!("http://{}", listener.local_addr().expect("a listener has an address"));
        let state =
            State { weather: Weather::default(), outage_until: Instant::now(), calls: 0, done: BTreeMap::new() };
        let shared = Arc::new(Shared { upstream: upstream.to_owned(), client, seed, state: Mutex::new(state) });
        tokio::spawn(serve(listener, Arc::clone(&shared)));
        Self { url, shared }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the faults from the next call on.
    pub fn set(&self, weather: Weather) {
        self.shared.state().weather = weather;
    }

    /// Refuses every call for this time, so that immediate retries fail too.
    pub fn outage(&self, length: Duration) {
        self.shared.state().outage_until = Instant::now() + length;
    }

    pub fn injected(&self) -> Injected {
        let state = self.shared.state();
        Injected { calls: state.calls, done: state.done.clone() }
    }
}

impl Injected {
    pub fn count(&self, fault: Fault) -> u64 {
        self.done.iter().filter(|((done, _), _)| *done == fault).map(|(_, count)| count).sum()
    }

    /// Number of calls received.
    pub const fn calls(&self) -> u64 {
        self.calls
    }
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} calls of the functions, with these faults:", self.calls)?;
        for ((fault, call), count) in &self.done {
            writeln!(f, "  {count:>5} {fault:?}: {:?} {}", call.service, call.operation)?;
        }
        Ok(())
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("the listener does not block");
    while let Ok((stream, _)) = listener.accept().await {
        // Headers and body of an answer are sent in two writes; Nagle's algorithm would delay the second one.
        stream.set_nodelay(true).ok();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(shared.answer(request).await) }
            });
            // A killed function drops its connections in the middle of a request.
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else { return empty(StatusCode::BAD_REQUEST) };
        let body = body.to_bytes();
        let call = Call::of(&head.method, &head.headers);
        let (fault, latency, mut rng) = self.draw(&call);
        tokio::time::sleep(latency).await;
        match fault {
            Some(Fault::Refused | Fault::Outage) => call.internal_error(&head.method),
            Some(Fault::Throttled) => call.throttled(&head.method, &body),
            Some(Fault::Conflict) => call.conflict(&body, &mut rng),
            fault => {
                let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
                let reply = self.forward(&head.method, path, &head.headers, body).await;
                if fault == Some(Fault::ReplyLost) { call.internal_error(&head.method) } else { reply }
            }
        }
    }

    /// The fault of this call, its delay, and the random generator for its details.
    fn draw(&self, call: &Call) -> (Option<Fault>, Duration, Rng) {
        let mut state = self.state();
        let mut rng = Rng::with_seed(self.seed.wrapping_add(state.calls));
        state.calls += 1;
        let weather = state.weather;
        let fault = if Instant::now() < state.outage_until {
            Some(Fault::Outage)
        } else {
            let chances = [
                (Fault::Refused, weather.refused),
                (Fault::ReplyLost, weather.reply_lost),
                (Fault::Throttled, weather.throttled),
                (Fault::Conflict, call.conflict_chance(&weather)),
            ];
            let mut drawn = rng.f64();
            let hit = chances.into_iter().find(|(_, chance)| {
                drawn -= chance;
                drawn < 0.0
            });
            hit.map(|(fault, _)| fault)
        };
        if let Some(fault) = fault {
            *state.done.entry((fault, call.clone())).or_default() += 1;
        }
        (fault, weather.latency, rng)
    }

    async fn forward(&self, method: &Method, path: &str, headers: &HeaderMap, body: Bytes) -> Response<Full<Bytes>> {
        let mut headers = headers.clone();
        // Headers of this connection, and headers that the client derives from the body. The host stays: it is signed.
        for name in [CONNECTION, TRANSFER_ENCODING, CONTENT_LENGTH, EXPECT] {
            headers.remove(name);
        }
        let request = self.client.request(method.clone(), format!("{}{path}", self.upstream)).headers(headers);
        let request = if body.is_empty() && method != Method::PUT { request } else { request.body(body) };
        let Ok(reply) = request.send().await else { return empty(StatusCode::BAD_GATEWAY) };
        let (status, mut headers) = (reply.status(), reply.headers().clone());
        headers.remove(CONNECTION);
        headers.remove(TRANSFER_ENCODING);
        let Ok(body) = reply.bytes().await else { return empty(StatusCode::BAD_GATEWAY) };
        let mut response = Response::new(Full::new(body));
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        response
    }
}

impl Call {
    fn of(method: &Method, headers: &HeaderMap) -> Self {
        let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        match target.and_then(|target| target.split_once('.')) {
            None => Self { service: Service::S3, operation: method.to_string() },
            Some((service, operation)) => {
                let service = match service {
                    service if service.starts_with("DynamoDB") => Service::DynamoDb,
                    "AWSEvents" => Service::EventBridge,
                    _ => Service::Sqs,
                };
                Self { service, operation: operation.to_owned() }
            }
        }
    }

    fn conflict_chance(&self, weather: &Weather) -> f64 {
        match self.operation.as_str() {
            "TransactWriteItems" => weather.transaction_conflict,
            "UpdateItem" | "PutItem" | "BatchExecuteStatement" => weather.conflict,
            _ => 0.0,
        }
    }

    fn internal_error(&self, method: &Method) -> Response<Full<Bytes>> {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        match self.service {
            Service::DynamoDb => dynamodb_error(status, "InternalServerError"),
            Service::EventBridge => eventbridge_error(status, "InternalException"),
            Service::Sqs => sqs_error(status, "InternalError"),
            Service::S3 => s3_error(method, status, "InternalError"),
        }
    }

    fn throttled(&self, method: &Method, body: &Bytes) -> Response<Full<Bytes>> {
        match (self.service, self.operation.as_str()) {
            (_, "BatchExecuteStatement") => refused_statements(body, "ThrottlingError"),
            (_, "SendMessageBatch") => refused_entries(body),
            (_, "PutEvents") => refused_events(body),
            (Service::DynamoDb, _) => dynamodb_error(StatusCode::BAD_REQUEST, "ProvisionedThroughputExceededException"),
            (Service::EventBridge, _) => eventbridge_error(StatusCode::BAD_REQUEST, "ThrottlingException"),
            (Service::Sqs, _) => sqs_error(StatusCode::BAD_REQUEST, "RequestThrottled"),
            (Service::S3, _) => s3_error(method, StatusCode::SERVICE_UNAVAILABLE, "SlowDown"),
        }
    }

    fn conflict(&self, body: &Bytes, rng: &mut Rng) -> Response<Full<Bytes>> {
        match self.operation.as_str() {
            "TransactWriteItems" => cancelled_transaction(body, rng),
            "BatchExecuteStatement" => refused_statements(body, "TransactionConflict"),
            _ => dynamodb_error(StatusCode::BAD_REQUEST, "TransactionConflictException"),
        }
    }
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

fn with_body(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", content_type.parse().expect("a content type"));
    response
}

fn json_1_0(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    with_body(status, "application/x-amz-json-1.0", body.to_string())
}

fn dynamodb_error(status: StatusCode, code: &str) -> Response<Full<Bytes>> {
    let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
    json_1_0(status, &json!({ "__type": kind, "message": "made up by the fault proxy" }))
}

fn eventbridge_error(status: StatusCode, code: &str) -> Response<Full<Bytes>> {
    let error = json!({ "__type": code, "message": "made up by the fault proxy" }).to_string();
    with_body(status, "application/x-amz-json-1.1", error)
}

fn sqs_error(status: StatusCode, code: &str) -> Response<Full<Bytes>> {
    let kind = format!("com.amazonaws.sqs#{code}");
    json_1_0(status, &json!({ "__type": kind, "message": "made up by the fault proxy" }))
}

fn s3_error(method: &Method, status: StatusCode, code: &str) -> Response<Full<Bytes>> {
    if method == Method::HEAD {
        return empty(status);
    }
    let text = format!("<Error><Code>{code}</Code><Message>made up by the fault proxy</Message></Error>");
    with_body(status, "application/xml", text)
}

/// The entries of the request's list with this name.
fn entries(body: &Bytes, list: &str) -> Vec<Value> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    request[list].as_array().cloned().unwrap_or_default()
}

/// A random item of the transaction conflicts with another transaction.
fn cancelled_transaction(body: &Bytes, rng: &mut Rng) -> Response<Full<Bytes>> {
    let mut reasons = vec![json!({ "Code": "None" }); entries(body, "TransactItems").len().max(1)];
    let hit = rng.usize(..reasons.len());
    reasons[hit] = json!({ "Code": "TransactionConflict", "Message": "Transaction is ongoing for the item" });
    let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    let error = json!({ "__type": kind, "Message": "Transaction cancelled", "CancellationReasons": reasons });
    json_1_0(StatusCode::BAD_REQUEST, &error)
}

fn refused_statements(body: &Bytes, code: &str) -> Response<Full<Bytes>> {
    let answers: Vec<_> = entries(body, "Statements")
        .iter()
        .map(|_| json!({ "Error": { "Code": code, "Message": "made up by the fault proxy" } }))
        .collect();
    json_1_0(StatusCode::OK, &json!({ "Responses": answers }))
}

/// All events are rejected.
fn refused_events(body: &Bytes) -> Response<Full<Bytes>> {
    let refused = json!({ "ErrorCode": "ThrottlingException", "ErrorMessage": "made up by the fault proxy" });
    let events = entries(body, "Entries").len();
    let answer = json!({ "FailedEntryCount": events, "Entries": vec![refused; events] });
    with_body(StatusCode::OK, "application/x-amz-json-1.1", answer.to_string())
}

fn refused_entries(body: &Bytes) -> Response<Full<Bytes>> {
    let refused = |entry: &Value| json!({ "Id": entry["Id"], "Code": "ServiceUnavailable", "SenderFault": false });
    let failed: Vec<_> = entries(body, "Entries").iter().map(refused).collect();
    json_1_0(StatusCode::OK, &json!({ "Successful": [], "Failed": failed }))
}
