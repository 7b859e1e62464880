use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use super::tests::{Seen, client, job_of, short, shown};
use super::*;
use crate::fake_api::{FakeApi, Reply};
use crate::fixtures::with;

fn message(of_type: &str, percent: u8, version: u64) -> Value {
    let status = if of_type == "ended" { "completed" } else { "running" };
    json!({ "type": of_type, "job": with(job_of(status, percent), json!({ "version": version })) })
}

/// Live connections: each gets the next list of messages once it has subscribed, and is closed then.
async fn live(scripts: Vec<Vec<Value>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/live", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for script in scripts {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = accept_async(stream).await.unwrap();
            let subscribe = socket.next().await.unwrap().unwrap().into_text().unwrap();
            assert!(subscribe.contains(r#""action":"subscribe""#), "{subscribe}");
            for message in script {
                socket.send(Message::text(message.to_string())).await.unwrap();
            }
        }
    });
    url
}

/// An API whose job has one percent more at each look, with a ticket for these live connections.
async fn api(live_url: String) -> (FakeApi, Arc<AtomicUsize>) {
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let api = FakeApi::serve(move |request, _| {
        if request.method == "POST" {
            let ticket = json!({ "ticket": "t", "url": live_url, "expiresAt": "2026-11-21T00:00:00Z" });
            return Reply::json(201, ticket);
        }
        let look = counted.fetch_add(1, Ordering::Relaxed);
        Reply::json(200, with(job_of("running", u8::try_from(look).unwrap()), json!({ "version": look })))
    })
    .await;
    (api, looks)
}

#[tokio::test]
async fn a_job_is_followed_by_messages_and_an_older_state_is_dropped() {
    let messages = vec![
        message("snapshot", 10, 10),
        message("progress", 30, 30),
        message("progress", 20, 20),
        message("ended", 100, 99),
    ];
    let (api, looks) = api(live(vec![messages]).await).await;
    let mut seen = Seen::default();
    let last = follow(&client(&api.url), shown("waiting", 0), &short(), &mut seen).await.unwrap();
    assert_eq!(last.status, Status::Completed);
    let running = |percent| format!("Job running, {percent}% complete...");
    let expected =
        ["Waiting for job to start...".to_owned(), running(0), running(10), running(30), "Job complete".to_owned()];
    assert_eq!(seen.0, expected);
    assert_eq!(looks.load(Ordering::Relaxed), 1, "only before the connection");
}

#[tokio::test]
async fn a_lost_connection_is_opened_again_and_the_job_is_polled_meanwhile() {
    let scripts = vec![vec![message("snapshot", 10, 10)], vec![], vec![message("ended", 100, 99)]];
    let (api, looks) = api(live(scripts).await).await;
    let mut seen = Seen::default();
    let patience = Patience { unchanged: Duration::from_secs(60), ..short() };
    let last = follow(&client(&api.url), shown("waiting", 0), &patience, &mut seen).await.unwrap();
    assert_eq!(last.status, Status::Completed);
    assert!(looks.load(Ordering::Relaxed) > 2, "it is polled between the connections");
    let tickets = api.seen().iter().filter(|request| request.target == "/api/live/tickets").count();
    assert_eq!(tickets, 3, "each connection has its own");
}

#[tokio::test]
async fn an_api_without_live_connections_is_asked_once_for_a_ticket() {
    let api = FakeApi::serve(|request, n| match request.method.as_str() {
        "POST" => Reply::json(404, json!({ "code": "live_unavailable" })),
        _ if n < 6 => Reply::json(200, job_of("running", u8::try_from(n).unwrap())),
        _ => Reply::json(200, job_of("completed", 100)),
    })
    .await;
    follow(&client(&api.url), shown("waiting", 0), &short(), &mut Seen::default()).await.unwrap();
    assert_eq!(api.seen().iter().filter(|request| request.method == "POST").count(), 1);
}
