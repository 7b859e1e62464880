//! The connections table: tickets, live connections and what they watch.

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, Select};
use jiff::Timestamp;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::live::{CONNECTION_LIFETIME, Connection, ConnectionId, Ticket, TicketDigest, Topic, Watcher};
use rowmill_core::ports::{BoxError, Connections, PortError, Subscribed, Subscriptions, Tickets};

use super::attributes::{Item, expiry_seconds, from_millis, number, text, time};
use super::errors::port_error;
use super::write::{Update, Written};

/// The connections table in DynamoDB.
///
/// The subscriptions of a connection are a set in its row below its owner, so that one write adds one within its limit,
/// and one query finds every connection that may watch a job of the owner.
#[derive(Clone, Debug)]
pub struct DynamoDbLive {
    client: Client,
    table: String,
}

const TICKET: &str = "ticket";
const CONNECTION: &str = "connection";

const SUBSCRIBE: Update = Update {
    doing: "adding a subscription",
    change: "ADD #topics :topics",
    condition: "attribute_exists(#until) AND (attribute_not_exists(#topics) OR size(#topics) < :most OR \
                contains(#topics, :topic))",
};

const UNSUBSCRIBE: Update = Update {
    doing: "removing a subscription",
    change: "DELETE #topics :topics",
    condition: "attribute_exists(#until)",
};

impl DynamoDbLive {
    pub const fn new(client: Client, table: String) -> Self {
        Self { client, table }
    }

    async fn put(&self, doing: &'static str, row: Row<'_>, until: Timestamp) -> Result<(), PortError> {
        let (scope, entry) = row.key();
        let mut request = self
            .client
            .put_item()
            .table_name(&self.table)
            .item("scope", text(scope))
            .item("entry", text(entry))
            .item("until", time(until))
            .item("expiresAt", number(expiry_seconds(until)));
        if let Some(owner) = row.owner() {
            request = request.item("owner", text(owner));
        }
        if let Row::Ticket(_, ticket) = row {
            request = request.item("connectionUntil", time(ticket.connection_until));
        }
        request.send().await.map_err(|error| port_error(doing, error))?;
        Ok(())
    }

    async fn delete(&self, doing: &'static str, row: Row<'_>) -> Result<(), PortError> {
        let (scope, entry) = row.key();
        let request = self.client.delete_item().table_name(&self.table).key("scope", text(scope));
        request.key("entry", text(entry)).send().await.map_err(|error| port_error(doing, error))?;
        Ok(())
    }

    fn update(&self, connection: &Connection) -> UpdateItemFluentBuilder {
        let (scope, entry) = Row::Watch(&connection.owner, &connection.id).key();
        self.client.update_item().table_name(&self.table).key("scope", text(scope)).key("entry", text(entry))
    }
}

enum Row<'a> {
    Ticket(&'a TicketDigest, &'a Ticket),
    /// Whose connection it is.
    Connection(&'a ConnectionId, Option<&'a Owner>),
    /// Subscriptions of a connection of an owner.
    Watch(&'a Owner, &'a ConnectionId),
}

impl Row<'_> {
    fn key(&self) -> (String, String) {
        match self {
            Self::Ticket(digest, _) => (format!("ticket#{}", digest.as_str()), TICKET.to_owned()),
            Self::Connection(id, _) => (format!("connection#{id}"), CONNECTION.to_owned()),
            Self::Watch(owner, id) => (watch_scope(owner), id.to_string()),
        }
    }

    const fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Ticket(_, ticket) => Some(&ticket.owner),
            Self::Connection(_, owner) => *owner,
            Self::Watch(..) => None,
        }
    }
}

fn watch_scope(owner: &Owner) -> String {
    format!("watch#{owner}")
}

/// The owner and the end in a row.
fn owner_in(row: &Item) -> Result<(Owner, Timestamp), BoxError> {
    let owner = row.get("owner").and_then(|owner| owner.as_s().ok()).ok_or("the row has no owner")?;
    Ok((Owner(owner.clone()), until_in(row)?))
}

fn until_in(row: &Item) -> Result<Timestamp, BoxError> {
    time_in(row, "until")?.ok_or_else(|| "the row has no end".into())
}

fn time_in(row: &Item, attribute: &str) -> Result<Option<Timestamp>, BoxError> {
    let millis = row.get(attribute).and_then(|time| time.as_n().ok());
    millis.map(|millis| from_millis(millis.parse()?)).transpose()
}

fn ticket_in(row: &Item) -> Result<Ticket, BoxError> {
    let (owner, until) = owner_in(row)?;
    // Tickets that an earlier version issued do not say when their connection ends.
    let connection_until =
        time_in(row, "connectionUntil")?.map_or_else(|| until.checked_add(CONNECTION_LIFETIME), Ok)?;
    Ok(Ticket { owner, until, connection_until })
}

#[async_trait]
impl Tickets for DynamoDbLive {
    async fn issue(&self, digest: &TicketDigest, ticket: &Ticket) -> Result<(), PortError> {
        self.put("storing a ticket", Row::Ticket(digest, ticket), ticket.until).await
    }

    async fn redeem(&self, digest: &TicketDigest, now: Timestamp) -> Result<Option<Ticket>, PortError> {
        const DOING: &str = "redeeming a ticket";
        let request = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key("scope", text(format!("ticket#{}", digest.as_str())))
            .key("entry", text(TICKET))
            .condition_expression("attribute_exists(#until) AND #until > :now")
            .expression_attribute_names("#until", "until")
            .expression_attribute_values(":now", time(now))
            .return_values(ReturnValue::AllOld);
        match request.send().await {
            Ok(output) => {
                let row = output.attributes.unwrap_or_default();
                ticket_in(&row).map(Some).map_err(|error| PortError::invalid(DOING, error))
            }
            Err(error) => match error.as_service_error() {
                Some(refused) if refused.is_conditional_check_failed_exception() => Ok(None),
                _ => Err(port_error(DOING, error)),
            },
        }
    }
}

#[async_trait]
impl Connections for DynamoDbLive {
    /// The row that names the owner comes last: a connection that is known can subscribe.
    async fn open(&self, connection: &Connection) -> Result<(), PortError> {
        const DOING: &str = "opening a connection";
        self.put(DOING, Row::Watch(&connection.owner, &connection.id), connection.until).await?;
        self.put(DOING, Row::Connection(&connection.id, Some(&connection.owner)), connection.until).await
    }

    async fn connection(&self, id: &ConnectionId, now: Timestamp) -> Result<Connection, PortError> {
        const DOING: &str = "reading a connection";
        let (scope, entry) = Row::Connection(id, None).key();
        let request = self.client.get_item().table_name(&self.table).consistent_read(true);
        let output = request.key("scope", text(scope)).key("entry", text(entry)).send().await;
        let row = output.map_err(|error| port_error(DOING, error))?.item.ok_or(PortError::NotFound)?;
        let (owner, until) = owner_in(&row).map_err(|error| PortError::invalid(DOING, error))?;
        if until > now { Ok(Connection { id: id.clone(), owner, until }) } else { Err(PortError::NotFound) }
    }

    /// The row with the subscriptions goes first: nothing is sent to a connection whose other row is left.
    async fn close(&self, id: &ConnectionId) -> Result<(), PortError> {
        const DOING: &str = "closing a connection";
        match self.connection(id, Timestamp::MIN).await {
            Ok(connection) => self.delete(DOING, Row::Watch(&connection.owner, id)).await?,
            Err(PortError::NotFound) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.delete(DOING, Row::Connection(id, None)).await
    }

    async fn count(&self, owner: &Owner, most: usize, now: Timestamp) -> Result<usize, PortError> {
        const DOING: &str = "counting the connections";
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .select(Select::Count)
            .consistent_read(true)
            .key_condition_expression("#scope = :scope")
            .filter_expression("#until > :now")
            .expression_attribute_names("#scope", "scope")
            .expression_attribute_names("#until", "until")
            .expression_attribute_values(":scope", text(watch_scope(owner)))
            .expression_attribute_values(":now", time(now))
            .into_paginator()
            .send();
        let mut count = 0;
        while count < most
            && let Some(page) = pages.next().await
        {
            count += usize::try_from(page.map_err(|error| port_error(DOING, error))?.count).unwrap_or_default();
        }
        Ok(count.min(most))
    }
}

#[async_trait]
impl Subscriptions for DynamoDbLive {
    async fn subscribe(&self, connection: &Connection, topic: Topic, most: usize) -> Result<Subscribed, PortError> {
        let values = [
            (":topics", AttributeValue::Ss(vec![topic.to_string()])),
            (":topic", text(topic)),
            (":most", number(i128::try_from(most).unwrap_or(i128::MAX))),
        ];
        match SUBSCRIBE.apply(self.update(connection), values).await? {
            Written::Applied(_) => Ok(Subscribed::Yes),
            Written::Refused(_) => Ok(Subscribed::Full),
        }
    }

    async fn unsubscribe(&self, connection: &Connection, topic: Topic) -> Result<(), PortError> {
        let values = [(":topics", AttributeValue::Ss(vec![topic.to_string()]))];
        match UNSUBSCRIBE.apply(self.update(connection), values).await {
            Ok(_) | Err(PortError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn watchers(&self, owner: &Owner) -> Result<Vec<Watcher>, PortError> {
        const DOING: &str = "reading the watchers";
        // Consistent: a subscription that is not seen here has its snapshot after the change that is about to be sent.
        let pages = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("#scope = :scope")
            .expression_attribute_names("#scope", "scope")
            .expression_attribute_values(":scope", text(watch_scope(owner)))
            .into_paginator();
        let (mut rows, mut watchers) = (pages.items().send(), Vec::new());
        while let Some(row) = rows.next().await {
            let row = row.map_err(|error| port_error(DOING, error))?;
            let until = until_in(&row).map_err(|error| PortError::invalid(DOING, error))?;
            watchers.extend(watcher_in(&row, until));
        }
        Ok(watchers)
    }
}

/// The watcher of a row; none if it watches nothing.
fn watcher_in(row: &Item, until: Timestamp) -> Option<Watcher> {
    let connection = ConnectionId(row.get("entry")?.as_s().ok()?.clone());
    let topics = row.get("topics")?.as_ss().ok()?.iter().filter_map(|topic| topic.parse().ok()).collect();
    Some(Watcher { connection, until, topics })
}
