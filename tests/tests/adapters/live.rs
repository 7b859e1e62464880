//! The connections table on DynamoDB, and the management API of WebSocket connections.

use std::sync::{Arc, Mutex};

use acceptance::served::{answer, served};
use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_aws::adapters::api_gateway::ApiGatewayConnections;
use rowmill_aws::adapters::dynamodb::DynamoDbLive;
use rowmill_aws::sdk::clients::Clients;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::live::{CONNECTION_LIFETIME, Connection, ConnectionId, Ticket, TicketDigest, Topic};
use rowmill_core::ports::{ConnectionSender, Connections, PortError, SendError, Subscribed, Subscriptions, Tickets};
use rowmill_testing::contract;
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
    let (me, digest) = (Owner("me".into()), TicketDigest::of("t"));
    let connection = Connection { id: ConnectionId("c=".into()), owner: me.clone(), until: at(1000) };
    live.open(&connection).await.unwrap();
    for number in 1..=2 {
        let topic = Topic::Job(JobGuid(Uuid::from_u128(number)));
        assert_eq!(live.subscribe(&connection, topic, 2).await.unwrap(), Subscribed::Yes);
    }
    assert_eq!(live.subscribe(&connection, Topic::Mine, 2).await.unwrap(), Subscribed::Full);
    assert_eq!(live.watchers(&me).await.unwrap()[0].topics.len(), 2);
    live.issue(&digest, &Ticket { owner: me, until: at(60), connection_until: at(900) }).await.unwrap();
    // The first reply is lost, and the second says that there is no ticket: the client asks for another one.
    assert_eq!(live.redeem(&digest, at(1)).await.unwrap(), None);
    assert_eq!(live.redeem(&digest, at(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_ticket_of_an_earlier_version_opens_a_connection_for_the_longest_time() {
    let server = Server::start().await;
    let table = server.connections_table().await;
    let live = DynamoDbLive::new(server.client.clone(), table.clone());
    let digest = TicketDigest::of("t");
    let ticket = Ticket { owner: Owner("me".into()), until: at(60), connection_until: at(900) };
    live.issue(&digest, &ticket).await.unwrap();
    let text = |text: String| AttributeValue::S(text);
    let request = server.client.update_item().table_name(table).key("entry", text("ticket".into()));
    let request = request.key("scope", text(format!("ticket#{}", digest.as_str())));
    request.update_expression("REMOVE connectionUntil").send().await.unwrap();
    let redeemed = live.redeem(&digest, at(1)).await.unwrap();
    assert_eq!(redeemed, Some(Ticket { connection_until: at(60) + CONNECTION_LIFETIME, ..ticket }));
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
