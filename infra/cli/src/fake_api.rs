//! A tiny HTTP server on 127.0.0.1 for tests: a closure answers each request, every request is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Header names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Number of bytes of the body sent before the connection is cut.
    sent: usize,
}

impl Reply {
    pub fn json(status: u16, body: Value) -> Self {
        Self::text(status, &body.to_string())
    }

    pub fn text(status: u16, body: &str) -> Self {
        Self::bytes(status, body.as_bytes())
    }

    pub fn bytes(status: u16, body: &[u8]) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), sent: body.len() }
    }

    /// Announces the whole body and sends no more than its first `bytes`.
    pub fn cut_after(self, bytes: usize) -> Self {
        Self { sent: bytes.min(self.body.len()), ..self }
    }

    /// No answer: the connection is cut.
    pub fn hang_up() -> Self {
        Self::text(0, "")
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// The server; it ends when dropped.
pub struct FakeApi {
    pub url: String,
    seen: Arc<Mutex<Vec<Request>>>,
    listener: JoinHandle<()>,
}

impl FakeApi {
    /// Serves with `answer`, which gets each request and how many came before it.
    pub async fn serve(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), Arc::clone(&seen));
        let listener = tokio::spawn(async move {
            while let Ok((connection, _)) = socket.accept().await {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                tokio::spawn(async move {
                    let _ = one_exchange(connection, &*answer, &log).await;
                });
            }
        });
        Self { url, seen, listener }
    }

    /// Every request so far, in order of arrival.
    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for FakeApi {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn one_exchange(
    connection: TcpStream,
    answer: &(dyn Fn(&Request, usize) -> Reply + Send + Sync),
    log: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let mut connection = BufReader::new(connection);
    let mut line = String::new();
    connection.read_line(&mut line).await?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(()) };
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await?;
    let request = Request { method, target, headers, body };
    let reply = {
        let mut log = log.lock().unwrap();
        log.push(request.clone());
        answer(&request, log.len() - 1)
    };
    if reply.status == 0 {
        return Ok(());
    }
    let mut head = format!("HTTP/1.1 {} Reason\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", reply.body.len());
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(&reply.body[..reply.sent]).await?;
    connection.flush().await
}
