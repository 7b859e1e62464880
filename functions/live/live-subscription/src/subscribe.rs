//! Subscribes connections to jobs: checks the owner, stores the subscription, then reads the state and sends it.
//!
//! The order is what matters. A change before the read is in the snapshot. A change after it finds the subscription. So
//! nothing falls between, and what is sent twice has the same version.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use rowmill_api::job::{JobReader, JobView};
use rowmill_api::live::{LiveAction, LiveErrorCode, LiveJobs, LiveMessage, LiveMessageType, LiveRequest};
use rowmill_core::callers::blocked::BlockCheck;
use rowmill_core::model::blocks::Principal;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::live::{Connection, ConnectionId, Topic};
use rowmill_core::ports::{Clock, Connections, JobFilter, PortError, Subscribed, Subscriptions};
use rowmill_core::sending::live_sender::LiveSender;
use rowmill_core::text::{RESERVED_NAMES, has_reserved_name};
use serde_json::{Map, Value};

use crate::messages::MessageBounds;

/// Number of jobs a subscription to all jobs shows at its beginning: the newest ones.
const SNAPSHOTS: usize = 20;

const SNAPSHOTS_AT_ONCE: usize = 4;

/// Maximum number of subscriptions of a connection.
pub const SUBSCRIPTIONS_MAX: usize = 50;

/// The use case and the ports it works through.
pub struct Subscriber {
    pub reader: JobReader,
    pub connections: Arc<dyn Connections>,
    pub blocked: BlockCheck,
    pub messages: MessageBounds,
    pub subscriptions: Arc<dyn Subscriptions>,
    pub sender: LiveSender,
    pub clock: Arc<dyn Clock>,
    /// Maximum number of subscriptions.
    pub per_connection: usize,
}

impl Subscriber {
    /// Answers a message of a connection.
    ///
    /// # Errors
    /// `Unavailable`: the client was told so, if it could be reached.
    pub async fn answer(&self, id: &ConnectionId, text: &str) -> Result<(), PortError> {
        let connection = match self.connections.connection(id, self.clock.now()).await {
            Ok(connection) => connection,
            // Removed while the message was on its way, or the token has ended. The client opens another connection.
            Err(PortError::NotFound) => return self.sender.give_up(id).await,
            Err(error) => return Err(error),
        };
        if !self.may_send(&connection).await? {
            return self.sender.give_up(id).await;
        }
        let request = match request(text) {
            Ok(request) => request,
            Err(expected) => {
                return self.send(id, &LiveMessage::error(LiveErrorCode::InvalidMessage, expected)).await;
            }
        };
        let answered = match request {
            Request::Ping => self.send(id, &LiveMessage::of(LiveMessageType::Pong)).await,
            Request::Subscribe(Topic::Job(job)) => self.subscribe_to_job(&connection, job).await,
            Request::Subscribe(Topic::Mine) => self.subscribe_to_all(&connection).await,
            Request::Unsubscribe(topic) => self.unsubscribe(&connection, topic).await,
        };
        if let Err(error) = answered {
            let detail = "A service that Rowmill needs is unavailable. Send the message again.";
            let message = LiveMessage::error(LiveErrorCode::Unavailable, detail);
            self.send(id, &with_topic(message, request.topic())).await?;
            return Err(error);
        }
        Ok(())
    }

    /// True if the owner is not blocked, and has not sent too many messages; if it has, the client was told so.
    async fn may_send(&self, connection: &Connection) -> Result<bool, PortError> {
        let (id, owner) = (&connection.id, &connection.owner);
        if self.blocked.block(&Principal::Owner(owner.clone())).await?.is_some() {
            tracing::warn!(connection.id = %id, %owner, "live connection closed: its owner is blocked");
            return Ok(false);
        }
        if self.messages.admit(connection, self.clock.now()).await? {
            return Ok(true);
        }
        tracing::warn!(connection.id = %id, %owner, "live connection closed: too many messages");
        let detail = "Too many messages came in this minute. The connection is closed. Open another one, later.";
        self.send(id, &LiveMessage::error(LiveErrorCode::TooManyMessages, detail)).await?;
        Ok(false)
    }

    async fn subscribe_to_job(&self, connection: &Connection, job_guid: JobGuid) -> Result<(), PortError> {
        let topic = Topic::Job(job_guid);
        match self.reader.owned(&connection.owner, job_guid).await {
            Ok(_) => {}
            Err(PortError::NotFound) => return self.no_such_job(connection, job_guid).await,
            Err(error) => return Err(error),
        }
        if !self.store(connection, topic).await? {
            return Ok(());
        }
        let view = match self.reader.owned(&connection.owner, job_guid).await {
            Ok(job) => self.reader.show(&job).await?,
            Err(PortError::NotFound) => return self.no_such_job(connection, job_guid).await,
            Err(error) => return Err(error),
        };
        self.send(&connection.id, &with_topic(LiveMessage::of(LiveMessageType::Subscribed), Some(topic))).await?;
        self.send_snapshot(connection, view).await
    }

    async fn subscribe_to_all(&self, connection: &Connection) -> Result<(), PortError> {
        if !self.store(connection, Topic::Mine).await? {
            return Ok(());
        }
        let filter = JobFilter { limit: SNAPSHOTS, ..JobFilter::default() };
        let page = self.reader.list(&connection.owner, &filter).await?;
        let subscribed = with_topic(LiveMessage::of(LiveMessageType::Subscribed), Some(Topic::Mine));
        self.send(&connection.id, &subscribed).await?;
        let snapshots = page.jobs.into_iter().map(|view| self.send_snapshot(connection, view));
        stream::iter(snapshots.collect::<Vec<_>>()).buffered(SNAPSHOTS_AT_ONCE).try_collect().await
    }

    /// Stores a subscription. Returns whether it is there; if not, the client was told why.
    async fn store(&self, connection: &Connection, topic: Topic) -> Result<bool, PortError> {
        match self.subscriptions.subscribe(connection, topic, self.per_connection).await {
            Ok(Subscribed::Yes) => Ok(true),
            Ok(Subscribed::Full) => {
                let detail = format!(
                    "This connection has {} subscriptions, which is the limit. Unsubscribe from others, or open another \
                     connection.",
                    self.per_connection
                );
                let message = LiveMessage::error(LiveErrorCode::TooManySubscriptions, detail);
                self.send(&connection.id, &with_topic(message, Some(topic))).await?;
                Ok(false)
            }
            // Closed since it was read.
            Err(PortError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn unsubscribe(&self, connection: &Connection, topic: Topic) -> Result<(), PortError> {
        self.subscriptions.unsubscribe(connection, topic).await?;
        let message = with_topic(LiveMessage::of(LiveMessageType::Unsubscribed), Some(topic));
        self.send(&connection.id, &message).await
    }

    /// A job of another owner looks like none.
    async fn no_such_job(&self, connection: &Connection, job_guid: JobGuid) -> Result<(), PortError> {
        let detail = format!("There is no job {job_guid}, or it has expired.");
        let message = LiveMessage::error(LiveErrorCode::NotFound, detail);
        self.send(&connection.id, &with_topic(message, Some(Topic::Job(job_guid)))).await
    }

    async fn send_snapshot(&self, connection: &Connection, view: JobView) -> Result<(), PortError> {
        self.send(&connection.id, &LiveMessage::of_job(LiveMessageType::Snapshot, view)).await
    }

    /// A client that does not get its answer finds its connection closed.
    async fn send(&self, to: &ConnectionId, message: &LiveMessage) -> Result<(), PortError> {
        self.sender.send(to, &message.text()).await.map(|_| ())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Request {
    Subscribe(Topic),
    Unsubscribe(Topic),
    Ping,
}

impl Request {
    const fn topic(self) -> Option<Topic> {
        match self {
            Self::Subscribe(topic) | Self::Unsubscribe(topic) => Some(topic),
            Self::Ping => None,
        }
    }
}

/// The object in a message. First as any object: a list of the fields' values would be read too, and `null` in place of
/// a word would count as no JSON.
fn live_request(text: &str) -> Result<LiveRequest, String> {
    let not_an_object = |error: serde_json::Error| match error.is_data() {
        true => "it is no object".to_owned(),
        false => "it is not JSON".to_owned(),
    };
    if has_reserved_name(text.as_bytes()) {
        return Err(format!("a field has a name that begins with `{RESERVED_NAMES}`"));
    }
    let fields: Map<String, Value> = serde_json::from_str(text).map_err(not_an_object)?;
    serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
}

/// Reads a message. The error is for the client.
fn request(text: &str) -> Result<Request, String> {
    let request = live_request(text).map_err(|what| {
        format!("The message is not understood: {what}. Send an object with `action` and `jobGuid` or `jobs`.")
    })?;
    let topic = match (request.job_guid, request.jobs) {
        (Some(job), None) => Some(Topic::Job(job)),
        (None, Some(LiveJobs::Mine)) => Some(Topic::Mine),
        (None, None) => None,
        (Some(_), Some(_)) => return Err("The message has `jobGuid` and `jobs`. Send one of them.".to_owned()),
    };
    match (request.action, topic) {
        (LiveAction::Subscribe, Some(topic)) => Ok(Request::Subscribe(topic)),
        (LiveAction::Unsubscribe, Some(topic)) => Ok(Request::Unsubscribe(topic)),
        (LiveAction::Ping, None) => Ok(Request::Ping),
        (LiveAction::Ping, Some(_)) => {
            Err("A `ping` is about no job. Send it without `jobGuid` and `jobs`.".to_owned())
        }
        (action, None) => {
            let action = action.as_str();
            Err(format!("`{action}` needs the job's `jobGuid`, or `jobs` with the value `mine`."))
        }
    }
}

fn with_topic(message: LiveMessage, topic: Option<Topic>) -> LiveMessage {
    match topic {
        Some(Topic::Job(job_guid)) => LiveMessage { job_guid: Some(job_guid), ..message },
        Some(Topic::Mine) => LiveMessage { jobs: Some(LiveJobs::Mine.into()), ..message },
        None => message,
    }
}
