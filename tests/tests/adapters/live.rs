//! The connections table on DynamoDB, and the management API of WebSocket connections.

use std::sync::{Arc, Mutex};

use acceptance::served::{answer, served};
use rowmill_aws::adapters::api_gateway::ApiGatewayConnections;
use rowmill_aws::adapters::dynamodb::DynamoDbLive;
use rowmill_aws::sdk::clients::Clients;
use rowmill_core::contract;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::live::{Connection, ConnectionId, TicketDigest, Topic};
use rowmill_core::ports::{ConnectionSender, Connections, PortError, SendError, Subscribed, Subscriptions, Tickets};
use uuid::Uuid;

use crate::dynamodb_server::Server;
use crate::lost_replies::{at, lossy};

#[tokio::test]
async fn the_connections_table_keeps_the_contract() {
    let server = Server::start().await;
    contract::live(async || DynamoDbLive::new(server.client.clone(), server.connections_table().await)).await;
}

#[tokio::test]
async fn a_lost_reply_neither_doubles_a_subscription_nor_revives_a_ticket() {
    let server = Server::start().await;
    let live = DynamoDbLive::new(lossy(&server).await, server.connections_table().await);
    let (me, ticket) = (Owner("me".into()), TicketDigest::of("t"));
    let connection = Connection { id: ConnectionId("c=".into()), owner: me.clone(), until: at(1000) };
    live.open(&connection).await.unwrap();
    for number in 1..=2 {
        let topic = Topic::Job(JobGuid(Uuid::from_u128(number)));
        assert_eq!(live.subscribe(&connection, topic, 2).await.unwrap(), Subscribed::Yes);
    }
    assert_eq!(live.subscribe(&connection, Topic::Mine, 2).await.unwrap(), Subscribed::Full);
    assert_eq!(live.watchers(&me, at(0)).await.unwrap()[0].topics.len(), 2);
    live.issue(&ticket, &me, at(60)).await.unwrap();
    // The first reply is lost, and the second says that there is no ticket: the client asks for another one.
    assert_eq!(live.redeem(&ticket, at(1)).await.unwrap(), None);
    assert_eq!(live.redeem(&ticket, at(1)).await.unwrap(), None);
}

/// The ends of a message and of a hang-up, and the requests, if each is answered with this status and error.
async fn sent(status: u16, error: &'static str) -> (Result<(), SendError>, Result<(), PortError>, Vec<String>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::clone(&seen);
    let config = served(move |request| {
        requests.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
        let errors = [("x-amzn-errortype", error)];
        answer(status, if error.is_empty() { &[] } else { &errors }, "{}")
    });
    let clients = Clients::new(config.await);
    let sender = ApiGatewayConnections::new(clients.connections("wss://a1.execute-api.test/live"));
    let connection = ConnectionId("L0S=".into());
    let sent = sender.send(&connection, "{}").await;
    let closed = sender.hang_up(&connection).await;
    let seen = seen.lock().unwrap().clone();
    (sent, closed, seen)
}

#[tokio::test]
async fn a_message_is_one_request_to_the_address_of_the_api() {
    let (sent, closed, seen) = sent(200, "").await;
    assert!(sent.is_ok() && closed.is_ok(), "{sent:?} {closed:?}");
    let at = "https://a1.execute-api.test/live/@connections/L0S%3D";
    assert_eq!(seen, [format!("POST {at}"), format!("DELETE {at}")]);
}

#[tokio::test]
async fn a_closed_connection_is_gone_and_any_other_failure_is_reported_once() {
    let (gone, closed, _) = sent(410, "GoneException").await;
    assert!(matches!(gone, Err(SendError::Gone)) && closed.is_ok(), "{gone:?} {closed:?}");
    let (failed, _, seen) = sent(500, "").await;
    assert!(matches!(failed, Err(SendError::Port(PortError::Unavailable { .. }))), "{failed:?}");
    assert_eq!(seen.len(), 2, "no request is sent again");
    let (busy, ..) = sent(429, "LimitExceededException").await;
    assert!(matches!(busy, Err(SendError::Port(PortError::Unavailable { .. }))), "{busy:?}");
    let (denied, ..) = sent(403, "AccessDeniedException").await;
    assert!(matches!(denied, Err(SendError::Port(PortError::Denied { .. }))), "{denied:?}");
}
