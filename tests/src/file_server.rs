//! A server of files that a stack fetches: it gives ranges of them, and breaks off.

use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request for a file.
pub struct FileRequest {
    /// With the query.
    pub path: String,
    /// The range that it asks for; the end may be behind the end of the file.
    pub range: Option<Range<usize>>,
}

/// The answer to a request.
pub struct FileAnswer {
    /// The status, and further header fields after a line end each.
    pub head: String,
    pub body: Bytes,
    /// True if the connection is dropped half way.
    pub is_cut: bool,
}

/// The server. It runs on the runtime it was started on, as long as that does.
pub struct FileServer {
    port: u16,
}

impl FileServer {
    /// A server that answers so.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(answer: impl Fn(FileRequest) -> FileAnswer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A caller that has gone away is none of its business.
                tokio::spawn(serve(stream, Arc::clone(&answer)));
            }
        });
        Self { port }
    }

    /// The parameter `FetchHosts` of a stack that may fetch from it.
    pub fn hosts(&self) -> String {
        json!({ format!("127.0.0.1:{}", self.port): { "allowPrivate": true } }).to_string()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// Answers one request and closes the connection.
async fn serve(stream: TcpStream, answer: Arc<impl Fn(FileRequest) -> FileAnswer>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = FileRequest { path: String::new(), range: None };
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim_end();
        if let Some(rest) = line.strip_prefix("GET ") {
            rest.split(' ').next().unwrap_or_default().clone_into(&mut request.path);
        }
        if let Some((first, last)) = line.strip_prefix("range: bytes=").and_then(|range| range.split_once('-')) {
            let number = |text: &str| text.parse::<usize>().expect("a number");
            request.range = Some(number(first)..number(last) + 1);
        }
        if line.is_empty() {
            break;
        }
    }
    let FileAnswer { head, body, is_cut } = answer(request);
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    let sent = if is_cut { &body[..body.len() / 2] } else { &body[..] };
    stream.write_all(sent).await?;
    stream.shutdown().await
}
