//! A client of live connections.

use std::time::Instant;

use aws_sdk_lambda::primitives::Blob;
use futures::{SinkExt, StreamExt};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::api::{ApiRequest, answer};
use super::{LocalStack, PATIENCE};

/// A ticket, got by this request.
pub async fn ticket(request: ApiRequest) -> Value {
    let (status, ticket) = answer(request).await;
    assert_eq!(status, StatusCode::CREATED, "{ticket}");
    ticket
}

pub struct LiveClient {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl LocalStack {
    /// A request for a ticket.
    pub fn live_ticket(&self) -> ApiRequest {
        self.post("/api/live/tickets")
    }

    /// Has a function take an event of a connection that API Gateway does not know.
    pub async fn live_message_of_nobody(&self, connection: &str) {
        let event = json!({
            "requestContext": { "connectionId": connection, "eventType": "MESSAGE", "routeKey": "$default" },
            "body": r#"{"action":"ping"}"#, "isBase64Encoded": false,
        });
        let function = self.output("LiveSubscriptionFunctionName");
        let request = self.lambda.invoke().function_name(function).payload(Blob::new(event.to_string()));
        let answer = request.send().await.expect("the function runs");
        assert_eq!(answer.function_error, None);
    }

    /// A live connection of the only owner. A refused one is tried again with another ticket, as every client does: a
    /// busy stack may be slow.
    pub async fn live(&self) -> LiveClient {
        let started = Instant::now();
        loop {
            match LiveClient::open(&ticket(self.live_ticket()).await).await {
                Ok(client) => return client,
                Err(error) => assert!(started.elapsed() < PATIENCE, "no connection: {error}"),
            }
        }
    }
}

impl LiveClient {
    /// Opens a connection with a ticket.
    ///
    /// # Errors
    /// The connection is refused.
    pub async fn open(ticket: &Value) -> Result<Self, Box<Error>> {
        let part = |name: &str| ticket[name].as_str().expect("text").to_owned();
        let address = format!("{}?ticket={}", part("url"), part("ticket"));
        let (socket, _) = connect_async(address).await?;
        Ok(Self { socket })
    }

    pub async fn send(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await.expect("the connection is open");
    }

    pub async fn subscribe(&mut self, job: &str) {
        self.send(json!({ "action": "subscribe", "jobGuid": job })).await;
    }

    /// The next message; none if the connection is closed.
    ///
    /// # Panics
    /// If nothing comes for long.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("something comes in time");
            match next {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// The next message of an open connection.
    pub async fn message(&mut self) -> Value {
        self.next().await.expect("the connection is open")
    }

    /// The next message of this type; what comes before it is dropped.
    pub async fn message_of(&mut self, of_type: &str) -> Value {
        loop {
            let message = self.message().await;
            if message["type"] == of_type {
                return message;
            }
        }
    }
}
