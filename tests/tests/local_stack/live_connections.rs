//! Opening live connections, and removing those that are gone.

use acceptance::local_stack::{LiveClient, LocalStack, ticket, until};
use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_core::model::live::TicketDigest;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Error;

use crate::live::long_job;
use crate::stack::on_the_stack;

#[test]
fn a_ticket_opens_one_connection_within_its_time() {
    on_the_stack(async |stack| {
        let good = ticket(stack.live_ticket()).await;
        let mut client = LiveClient::open(&good).await.expect("a good ticket");
        assert_eq!(refusal(&good).await, 401, "it is used up");
        let mut none = good.clone();
        none["ticket"] = json!("0".repeat(64));
        assert_eq!(refusal(&none).await, 401, "there is no such ticket");
        // What is stored opens nothing.
        let mut stored = ticket(stack.live_ticket()).await;
        let digest = TicketDigest::of(stored["ticket"].as_str().expect("text"));
        stored["ticket"] = json!(digest.as_str());
        assert_eq!(refusal(&stored).await, 401, "the digest is no ticket");
        let late = ticket(stack.live_ticket()).await;
        expire(stack, &late).await;
        assert_eq!(refusal(&late).await, 401, "it has expired");
        client.send(json!({ "action": "ping" })).await;
        assert_eq!(client.message().await, json!({ "type": "pong" }));
    });
}

/// The status with which a connection by this ticket is refused.
async fn refusal(ticket: &Value) -> u16 {
    match LiveClient::open(ticket).await {
        Err(error) => match *error {
            Error::Http(response) => response.status().as_u16(),
            other => panic!("{other}"),
        },
        Ok(_) => panic!("{ticket} opens a connection"),
    }
}

/// Puts the rows of a connection that API Gateway does not know, and that watches all jobs.
async fn put_connection(stack: &LocalStack, id: &str) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let until = jiff::Timestamp::now().as_millisecond() + 3_600_000;
    for (scope, entry) in [("watch#local", id), (&format!("connection#{id}"), "connection")] {
        let request = stack.dynamodb.put_item().table_name(stack.output("ConnectionsTable"));
        let request = request.item("scope", text(scope)).item("entry", text(entry)).item("owner", text("local"));
        let request = request.item("topics", AttributeValue::Ss(vec!["mine".to_owned()]));
        request.item("until", AttributeValue::N(until.to_string())).send().await.expect("the table takes it");
    }
}

/// True if rows of this connection are left.
async fn is_known(stack: &LocalStack, id: &str) -> bool {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let request = stack.dynamodb.get_item().table_name(stack.output("ConnectionsTable")).consistent_read(true);
    let request = request.key("scope", text(&format!("connection#{id}"))).key("entry", text("connection"));
    request.send().await.expect("the table answers").item.is_some()
}

/// API Gateway does not promise to tell that a connection was closed.
#[test]
fn a_connection_whose_end_nobody_told_is_removed_by_the_next_message() {
    on_the_stack(async |stack| {
        put_connection(stack, "gone1").await;
        stack.live_message_of_nobody("gone1").await;
        assert!(!is_known(stack, "gone1").await, "by the answer to a message");
        put_connection(stack, "gone2").await;
        long_job(stack, 10).await;
        until("not by a change of a job", async || !is_known(stack, "gone2").await).await;
        // Of this one there are no rows: it is hung up on.
        stack.live_message_of_nobody("gone3").await;
    });
}

/// Has the time of a ticket run out.
async fn expire(stack: &LocalStack, ticket: &Value) {
    let digest = TicketDigest::of(ticket["ticket"].as_str().expect("text"));
    let request = stack.dynamodb.update_item().table_name(stack.output("ConnectionsTable"));
    let request = request
        .key("scope", AttributeValue::S(format!("ticket#{}", digest.as_str())))
        .key("entry", AttributeValue::S("ticket".to_owned()))
        .update_expression("SET #until = :past")
        .condition_expression("attribute_exists(#until)")
        .expression_attribute_names("#until", "until")
        .expression_attribute_values(":past", AttributeValue::N("1000".to_owned()));
    request.send().await.expect("the ticket is there");
}
