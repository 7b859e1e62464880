//! Files that the stack fetches from a server that drops connections, changes its file, knows no ranges, and redirects.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use acceptance::files;
use acceptance::local_stack::{LocalStack, answer, refused};
use bytes::Bytes;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::stack::on_the_stack;

/// The server of this process. It runs on the runtime it was started on.
pub static FILES: OnceLock<FileServer> = OnceLock::new();

/// Rows of the big file: it has three parts.
const ROWS: u64 = 2_000_000;

pub struct FileServer {
    port: u16,
    state: Arc<State>,
}

struct State {
    big: Bytes,
    connections: AtomicUsize,
}

impl FileServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let state = Arc::new(State { big: files::plain_csv(ROWS).into(), connections: AtomicUsize::new(0) });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A caller that has gone away is none of its business.
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { port, state }
    }

    /// The parameter `FetchHosts` of a stack that may fetch from it.
    pub fn hosts(&self) -> String {
        json!({ format!("127.0.0.1:{}", self.port): { "allowPrivate": true } }).to_string()
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// Answers one request and closes the connection.
async fn serve(stream: TcpStream, state: Arc<State>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut path, mut range) = (String::new(), None);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim_end().to_owned();
        if let Some(rest) = line.strip_prefix("GET ") {
            path = rest.split(' ').next().unwrap_or_default().to_owned();
        }
        if let Some((first, last)) = line.strip_prefix("range: bytes=").and_then(|range| range.split_once('-')) {
            range = Some((first.parse::<usize>().expect("a number"), last.parse::<usize>().expect("a number")));
        }
        if line.is_empty() {
            break;
        }
    }
    let is_big = path.starts_with("/big");
    let connection = state.connections.fetch_add(usize::from(is_big), Ordering::SeqCst);
    let text = &state.big;
    let (head, body) = match (path.as_str(), range) {
        ("/away.csv", _) => ("302 Found\r\nlocation: http://169.254.169.254/latest/meta-data".to_owned(), &text[..0]),
        ("/plain.csv", _) | (_, None) => ("200 OK\r\ncontent-type: text/csv".to_owned(), &text[..]),
        ("/big.csv?key=secret" | "/changes.csv", Some((first, last))) => {
            let last = last.min(text.len() - 1);
            let is_new = path == "/changes.csv" && first > 20_000_000;
            let version = if is_new { "\"new\"" } else { "\"old\"" };
            let range = format!("bytes {first}-{last}/{}", text.len());
            (format!("206 Partial\r\netag: {version}\r\ncontent-range: {range}"), &text[first..=last])
        }
        _ => ("404 Not Found".to_owned(), &text[..0]),
    };
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    // Every third connection is dropped.
    let sent = if is_big && connection % 3 == 2 { &body[..body.len() / 2] } else { body };
    stream.write_all(sent).await?;
    stream.shutdown().await
}

async fn order(stack: &LocalStack, path: &str) -> Value {
    let body = json!({ "source": { "url": FILES.get().expect("it runs").url(path) } });
    let (status, upload) = answer(stack.post("/api/uploads").json(&body)).await;
    assert_eq!((status, &upload["status"]), (StatusCode::ACCEPTED, &json!("fetching")), "{upload}");
    upload
}

/// The upload once it is neither pending nor being fetched.
async fn ended(stack: &LocalStack, upload: &Value) -> Value {
    let path = format!("/api/uploads/{}", upload["fileGuid"].as_str().expect("a guid"));
    loop {
        let (_, upload) = answer(stack.get(&path)).await;
        if upload["status"] != "fetching" {
            return upload;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[test]
fn a_file_of_a_server_that_drops_connections_is_processed_by_one_command() {
    on_the_stack(async |stack| {
        let server = FILES.get().expect("it runs");
        let ran = stack.runs(&["run", &server.url("/big.csv?key=secret"), "--type", "validate"]).await;
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("succeeded  2,000,000"), "{}", ran.out);
        assert!(ran.out.contains("file       big.csv") && !ran.out.contains("secret"), "{}", ran.out);
        assert!(server.state.connections.load(Ordering::SeqCst) > 4, "some of them were dropped");
    });
}

#[test]
fn a_file_without_ranges_is_fetched_whole() {
    on_the_stack(async |stack| {
        let upload = ended(stack, &order(stack, "/plain.csv").await).await;
        let size = FILES.get().expect("it runs").state.big.len();
        assert_eq!((&upload["status"], &upload["size"]), (&json!("ready"), &json!(size)), "{upload}");
        assert_eq!((&upload["contentType"], &upload["bytesStored"]), (&json!("text/csv"), &json!(size)));
        let job = stack.create("validate", upload["fileGuid"].as_str().expect("a guid"), json!({})).await;
        assert_eq!(stack.ended(&job).await["itemsSucceeded"], json!(ROWS));
    });
}

#[test]
fn a_file_that_cannot_be_fetched_says_why_and_no_job_runs_on_it() {
    on_the_stack(async |stack| {
        for (path, code, says) in [
            ("/missing.csv", "source_refused", "The source answered with status 404 (Not Found)."),
            ("/away.csv", "source_refused", "redirects to a URL that cannot be fetched"),
            ("/changes.csv", "source_changed", "has changed at its source"),
        ] {
            let upload = ended(stack, &order(stack, path).await).await;
            assert_eq!((&upload["status"], &upload["failure"]["code"]), (&json!("failed"), &json!(code)), "{upload}");
            assert!(upload["failure"]["detail"].as_str().is_some_and(|detail| detail.contains(says)), "{upload}");
            let job = json!({ "jobType": "validate", "fileGuid": upload["fileGuid"] });
            let (problem, _) =
                refused(stack.post("/api/jobs").json(&job), StatusCode::UNPROCESSABLE_ENTITY, "upload_failed").await;
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(says)), "{problem}");
        }
        let server = FILES.get().expect("it runs");
        let ran = stack.runs(&["upload", &server.url("/missing.csv")]).await;
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(ran.err.contains("the file could not be fetched: The source answered with status 404"), "{}", ran.err);
        for url in ["https://elsewhere.example/a.csv", "http://127.0.0.1:1/", "https://me:you@elsewhere.example/"] {
            let body = json!({ "source": { "url": url } });
            let request = stack.post("/api/uploads").json(&body);
            let (problem, _) = refused(request, StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
            assert_eq!(problem["field"], "source.url", "{problem}");
        }
    });
}
