//! A web service that job types call as webhooks: one path does well, others hang and lie.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rowmill_core::model::webhook_key::{standard_secret, webhook_key};
use rowmill_targets::signature::{IDEMPOTENCY_KEY_HEADER, SIGNATURE_HEADER, SignedCall, TIMESTAMP_HEADER};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Time the answers of the slow paths take.
const SLOWLY: Duration = Duration::from_millis(200);

/// The service of this process. It runs on the runtime it was started on.
pub static SERVICE: OnceLock<Service> = OnceLock::new();

pub struct Service {
    port: u16,
    state: Arc<State>,
}

struct State {
    /// The secret of the stack, which does not exist yet when the service starts.
    secret: OnceLock<String>,
    hangs: AtomicBool,
    is_down: AtomicBool,
    calls: Mutex<BTreeMap<String, usize>>,
    at_once: Mutex<BTreeMap<String, AtOnce>>,
}

/// Numbers of calls of a path that are being answered: now, and at most so far.
#[derive(Clone, Copy, Default)]
struct AtOnce {
    now: usize,
    most: usize,
}

/// A call that is being answered, until it is dropped: also when its caller is gone.
struct Answering {
    state: Arc<State>,
    path: String,
}

impl Answering {
    fn begin(state: &Arc<State>, path: &str) -> Self {
        let mut at_once = state.at_once.lock().expect("no panic");
        let of_path = at_once.entry(path.to_owned()).or_default();
        of_path.now += 1;
        of_path.most = of_path.most.max(of_path.now);
        Self { state: Arc::clone(state), path: path.to_owned() }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(of_path) = self.state.at_once.lock().expect("no panic").get_mut(&self.path) {
            of_path.now -= 1;
        }
    }
}

impl Service {
    /// Starts the service. `/hang` hangs until [`recover`](Self::recover), `/down` is down until
    /// [`comes_back`](Self::comes_back).
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let state = Arc::new(State {
            secret: OnceLock::new(),
            hangs: AtomicBool::new(true),
            is_down: AtomicBool::new(true),
            calls: Mutex::default(),
            at_once: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                let service = service_fn(move |request| answer(Arc::clone(&state), request));
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    // A caller that has gone away is none of its business.
                    server.serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { port, state }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The same, by the name of this machine.
    pub fn named_url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.port)
    }

    pub fn calls(&self, path: &str) -> usize {
        self.state.calls.lock().expect("no panic").get(path).copied().unwrap_or_default()
    }

    /// Number of calls of a path being answered now.
    pub fn answering(&self, path: &str) -> usize {
        self.state.at_once.lock().expect("no panic").get(path).map_or(0, |at_once| at_once.now)
    }

    /// Maximum number of calls of a path answered at once.
    pub fn most_at_once(&self, path: &str) -> usize {
        self.state.at_once.lock().expect("no panic").get(path).map_or(0, |at_once| at_once.most)
    }

    /// Tells the service the secret that its callers have. It refuses all calls before.
    pub fn trust(&self, secret: String) {
        self.state.secret.set(secret).expect("it is told once");
    }

    /// From now on `/down` does well.
    pub fn comes_back(&self) {
        self.state.is_down.store(false, Ordering::SeqCst);
    }

    /// From now on `/hang` does well.
    pub fn recover(&self) {
        self.state.hangs.store(false, Ordering::SeqCst);
    }
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (uri, headers) = (request.uri().clone(), request.headers().clone());
    let path = uri.path().to_owned();
    *state.calls.lock().expect("no panic").entry(path.clone()).or_default() += 1;
    let Ok(body) = request.into_body().collect().await else { return Ok(whole(StatusCode::BAD_REQUEST, "")) };
    let body = body.to_bytes();
    if !is_signed(&state, &uri, &headers, &body) {
        return Ok(whole(StatusCode::UNAUTHORIZED, ""));
    }
    Ok(match path.as_str() {
        "/standard" if !is_standard(&state, &headers, &body) => whole(StatusCode::UNAUTHORIZED, ""),
        "/one-at-a-time" | "/three-at-a-time" => {
            let _answering = Answering::begin(&state, &path);
            tokio::time::sleep(SLOWLY).await;
            whole(StatusCode::OK, &well(&body).to_string())
        }
        "/hang" if state.hangs.load(Ordering::SeqCst) => std::future::pending().await,
        "/down" if state.is_down.load(Ordering::SeqCst) => whole(StatusCode::SERVICE_UNAVAILABLE, ""),
        "/lie" => whole(StatusCode::OK, r#"{"batchItemFailures": [{"itemIdentifier": "somebody's/1"}]}"#),
        "/redirect" => {
            let mut response = whole(StatusCode::TEMPORARY_REDIRECT, "");
            let metadata = "https://169.254.169.254/latest/meta-data/".parse().expect("a header");
            response.headers_mut().insert("location", metadata);
            response
        }
        _ => whole(StatusCode::OK, &well(&body).to_string()),
    })
}

/// True if the call is signed with the key of the job type that it names, for this host and path.
fn is_signed(state: &State, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> bool {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let job_type =
        serde_json::from_slice(body).ok().and_then(|body: Value| body["jobType"].as_str().map(str::to_owned));
    let (Some(secret), Some(job_type), Some(timestamp), Some(host), Some(idempotency_key), Some(signatures)) = (
        state.secret.get(),
        job_type,
        header(TIMESTAMP_HEADER).and_then(|timestamp| timestamp.parse().ok()),
        header("host"),
        header(IDEMPOTENCY_KEY_HEADER),
        header(SIGNATURE_HEADER),
    ) else {
        return false;
    };
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    let expected = SignedCall { timestamp, host, path, idempotency_key, webhook_id: "", body }
        .signature(&webhook_key(secret, &job_type));
    signatures.split(',').any(|signature| signature == expected)
}

/// True if the Python example of a service takes the call for genuine, by its headers of Standard Webhooks.
fn is_standard(state: &State, headers: &HeaderMap, body: &[u8]) -> bool {
    const CHECK: &str = "import json, runpy, sys\n\
        given = json.load(sys.stdin)\n\
        given['body'] = given['body'].encode()\n\
        assert runpy.run_path(sys.argv[1])['is_genuine'](**given)";
    let secret = standard_secret(&webhook_key(state.secret.get().expect("a signed call"), "standard"));
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let headers: BTreeMap<&str, String> = headers.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
    let body = str::from_utf8(body).expect("JSON");
    let given = json!({ "secret": secret, "headers": headers, "body": body }).to_string();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/examples/standard_webhook.py");
    let mut python = Command::new("python3");
    let mut python = python.args(["-c", CHECK]).arg(example).stdin(Stdio::piped()).spawn().expect("python3 is there");
    python.stdin.take().expect("piped").write_all(given.as_bytes()).expect("it reads");
    python.wait().expect("it ends").success()
}

/// Every item does well but those of amount 0.
fn well(body: &[u8]) -> Value {
    let request: Value = serde_json::from_slice(body).expect("JSON");
    let items = request["items"].as_array().expect("items").iter().filter(|item| item["record"]["amount"] == "0");
    let failure = |item: &Value| json!({ "itemIdentifier": item["itemIdentifier"], "code": "nothing_to_pay" });
    json!({ "batchItemFailures": items.map(failure).collect::<Vec<_>>() })
}

fn whole(status: StatusCode, body: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(body.as_bytes())));
    *response.status_mut() = status;
    response
}
