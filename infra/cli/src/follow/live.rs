//! A live connection that watches one job: `docs/live.md` describes the messages.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use reqwest::Url;
use rowmill_api::live::{LiveAction, LiveRequest, LiveTicketView};
use rowmill_core::model::ids::JobGuid;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::api::{ApiClient, Job, is_loopback};

/// The longest time to open a connection, with its ticket.
const OPENING: Duration = Duration::from_secs(5);

/// The wait before a lost connection is opened again; it doubles each time that this fails.
const FIRST_RETRY: Duration = Duration::from_millis(500);

/// The longest wait before another try.
const LAST_RETRY: Duration = Duration::from_secs(30);

/// The largest message that is read. API Gateway sends at most 128 KiB.
const MESSAGE_MAX_BYTES: usize = 1024 * 1024;

/// Watches a job as long as the API has live connections, and opens another one when it is lost.
pub struct LiveJob<'a> {
    api: &'a ApiClient,
    job_guid: JobGuid,
    socket: Option<WebSocketStream<MaybeTlsStream<TcpStream>>>,
    /// When to try next. Never, if there are no live connections.
    next_try: Option<Instant>,
    retry: Duration,
}

/// A message, as far as it matters here.
#[derive(Deserialize)]
struct Received {
    job: Option<Job>,
    code: Option<String>,
}

impl<'a> LiveJob<'a> {
    /// Not connected yet.
    pub fn new(api: &'a ApiClient, job_guid: JobGuid) -> Self {
        Self { api, job_guid, socket: None, next_try: Some(Instant::now()), retry: FIRST_RETRY }
    }

    /// True if messages can come.
    pub const fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    /// Opens a connection if there is none and it is time for one. A failure is no error: the caller polls meanwhile.
    pub async fn open_if_due(&mut self) {
        let is_due = self.next_try.is_some_and(|at| at <= Instant::now());
        if self.is_open() || !is_due {
            return;
        }
        match timeout(OPENING, self.open()).await {
            Ok(Opened::Socket(socket)) => self.socket = Some(*socket),
            Ok(Opened::Never) => self.next_try = None,
            Ok(Opened::NotNow) | Err(_) => self.try_later(),
        }
    }

    fn try_later(&mut self) {
        self.socket = None;
        self.next_try = Some(Instant::now() + self.retry);
        self.retry = (self.retry * 2).min(LAST_RETRY);
    }

    async fn open(&self) -> Opened {
        let ticket = match self.api.live_ticket().await {
            Ok(ticket) => ticket,
            Err(error) if error.is_transient() => return Opened::NotNow,
            // An API without live connections.
            Err(_) => return Opened::Never,
        };
        let Some(address) = address(&ticket) else { return Opened::Never };
        let limits = WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX_BYTES));
        let Ok((mut socket, _)) = connect_async_with_config(address.as_str(), Some(limits), false).await else {
            return Opened::NotNow;
        };
        let subscribe = LiveRequest { action: LiveAction::Subscribe, job_guid: Some(self.job_guid), jobs: None };
        match socket.send(request(subscribe)).await {
            Ok(()) => Opened::Socket(Box::new(socket)),
            Err(_) => Opened::NotNow,
        }
    }

    /// The next state of the job that comes within this time. None if none comes, or the connection is lost.
    pub async fn changed(&mut self, within: Duration) -> Option<Job> {
        let until = Instant::now() + within;
        while let Some(socket) = &mut self.socket {
            match timeout_at(until, socket.next()).await {
                Err(_) => {
                    // Nothing has happened. A message keeps API Gateway from closing an idle connection.
                    let ping = LiveRequest { action: LiveAction::Ping, job_guid: None, jobs: None };
                    if socket.send(request(ping)).await.is_err() {
                        self.try_later();
                    }
                    return None;
                }
                Ok(Some(Ok(Message::Text(text)))) => match serde_json::from_str(&text) {
                    Ok(Received { job: Some(job), .. }) if job.job_guid == self.job_guid => {
                        self.retry = FIRST_RETRY;
                        return Some(job);
                    }
                    // The subscription was refused. Polling finds out why.
                    Ok(Received { code: Some(_), .. }) => {
                        self.try_later();
                        return None;
                    }
                    _ => {}
                },
                Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => {
                    self.try_later();
                    return None;
                }
                Ok(Some(Ok(_))) => {}
            }
        }
        None
    }
}

enum Opened {
    Socket(Box<WebSocketStream<MaybeTlsStream<TcpStream>>>),
    NotNow,
    Never,
}

fn request(request: LiveRequest) -> Message {
    Message::text(serde_json::to_string(&request).expect("a request is JSON"))
}

/// Where the ticket opens a connection. None if the ticket would travel unencrypted to another machine.
fn address(ticket: &LiveTicketView) -> Option<Url> {
    let mut url = Url::parse(&ticket.url).ok()?;
    let is_safe = url.scheme() == "wss" || (url.scheme() == "ws" && is_loopback(&url));
    url.query_pairs_mut().append_pair("ticket", &ticket.ticket);
    is_safe.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn a_ticket_never_travels_unencrypted_to_another_machine() {
        let at = |url: &str| {
            let ticket = LiveTicketView { ticket: "t".into(), url: url.into(), expires_at: Timestamp::UNIX_EPOCH };
            address(&ticket).map(String::from)
        };
        assert_eq!(at("wss://a.example/live").as_deref(), Some("wss://a.example/live?ticket=t"));
        assert!(at("ws://127.0.0.1:4566/x/live").is_some());
        assert_eq!(at("ws://a.example/live"), None);
        assert_eq!(at("http://127.0.0.1/live"), None);
    }
}
