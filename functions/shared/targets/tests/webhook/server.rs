//! A local web service that replies with exactly the bytes that a test gives it.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A received request.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The path with the query.
    pub path: String,
    /// The headers by lowercase name.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

pub enum Reply {
    /// Writes these bytes and keeps the connection open.
    Bytes(Vec<u8>),
    /// Writes these bytes and closes the connection.
    Cut(Vec<u8>),
    /// Never writes anything.
    Hang,
    /// Writes the first bytes, then the second bytes again and again until the client closes the connection. If the
    /// second bytes are empty, hangs after the first ones.
    Endless(Vec<u8>, Vec<u8>),
}

impl Reply {
    /// A complete HTTP response.
    pub fn http(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        Self::Bytes(format!("HTTP/1.1 {status} So\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes())
    }

    /// A valid answer: no item failed.
    pub fn ok() -> Self {
        Self::http(200, &[("content-type", "application/json")], r#"{"batchItemFailures": []}"#)
    }
}

/// The service. It stops with its tokio runtime.
pub struct Server {
    pub port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    written: Arc<Mutex<usize>>,
}

impl Server {
    /// Starts a service. `script` gets each request and the number of requests before it.
    pub async fn start(script: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, written) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let server = Self { port, seen: Arc::clone(&seen), written: Arc::clone(&written) };
        let script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&seen), Arc::clone(&written)));
            }
        });
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Number of bytes that endless replies wrote.
    pub fn written(&self) -> usize {
        *self.written.lock().unwrap()
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Arc<impl Fn(&Seen, usize) -> Reply>,
    seen: Arc<Mutex<Vec<Seen>>>,
    written: Arc<Mutex<usize>>,
) {
    while let Some(request) = read(&mut stream).await {
        let before = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            seen.len() - 1
        };
        match script(&request, before) {
            Reply::Bytes(bytes) => stream.write_all(&bytes).await.unwrap(),
            Reply::Cut(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                return;
            }
            Reply::Hang => std::future::pending().await,
            Reply::Endless(first, more) => {
                stream.write_all(&first).await.unwrap();
                if more.is_empty() {
                    std::future::pending().await
                }
                while stream.write_all(&more).await.is_ok() {
                    *written.lock().unwrap() += more.len();
                }
                return;
            }
        }
    }
}

/// The next request of a connection; `None` at its end.
async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: HashMap<String, String> = lines.filter_map(header).collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Seen { path, headers, body })
}
