//! Live connections: the ticket that opens one, and the messages in both directions. `docs/live.md` describes them.

use std::fmt;

use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::words::{Open, words};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::job::JobView;

/// A ticket for one live connection.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveTicketView {
    /// The ticket. It opens one connection.
    pub ticket: String,
    /// The address of the WebSocket API. Append `?ticket=` and the ticket.
    pub url: String,
    /// Until when the ticket can be used.
    pub expires_at: Timestamp,
}

impl fmt::Debug for LiveTicketView {
    /// Anyone who has the ticket can open the connection, so it must not reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveTicketView").field("url", &self.url).finish_non_exhaustive()
    }
}

words! {
    /// What a client asks for.
    LiveAction {
        /// Send me the state of this job, or of all my jobs, and every change of it.
        Subscribe = "subscribe",
        /// Send me no more of it.
        Unsubscribe = "unsubscribe",
        /// Answer, so that the connection is not idle.
        Ping = "ping",
    }
}

words! {
    /// The jobs that a subscription is about, if it is not about one.
    LiveJobs {
        /// All jobs of the owner, also those that are created later.
        Mine = "mine",
    }
}

/// A message from a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LiveRequest {
    /// What it asks for.
    pub action: LiveAction,
    /// The job to subscribe to or to unsubscribe from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub job_guid: Option<JobGuid>,
    /// `mine`, in place of a job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub jobs: Option<LiveJobs>,
}

words! {
    /// What a message to a client says.
    LiveMessageType {
        /// The state of a job when the subscription began.
        Snapshot = "snapshot",
        /// The state of a job that has changed.
        Progress = "progress",
        /// The state of a job at the end of an attempt.
        Ended = "ended",
        /// The subscription is there.
        Subscribed = "subscribed",
        /// The subscription is gone.
        Unsubscribed = "unsubscribed",
        /// The request was not carried out. `code` says why.
        Error = "error",
        /// The answer to a ping.
        Pong = "pong",
    }
}

words! {
    /// Why a request was not carried out.
    LiveErrorCode {
        /// There is no such job of this owner, or it has expired.
        NotFound = "not_found",
        /// The message is not JSON, or asks for nothing that there is.
        InvalidMessage = "invalid_message",
        /// The connection has too many subscriptions. Unsubscribe from others, or open another connection.
        TooManySubscriptions = "too_many_subscriptions",
        /// The connection or its owner has sent too many messages in this minute. The connection is closed.
        TooManyMessages = "too_many_messages",
        /// Rowmill could not carry it out. Send it again.
        Unavailable = "unavailable",
    }
}

/// A message to a client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveMessage {
    /// What it says.
    pub r#type: Open<LiveMessageType>,
    /// The job, in `snapshot`, `progress` and `ended`: what `GET /api/jobs/{jobGuid}` shows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub job: Option<Box<JobView>>,
    /// The job of the subscription, in the other messages.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub job_guid: Option<JobGuid>,
    /// `mine`, in place of a job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub jobs: Option<Open<LiveJobs>>,
    /// Why a request was not carried out, for a program.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<Open<LiveErrorCode>>,
    /// Why a request was not carried out, for a person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
}

impl LiveMessage {
    /// A message of this type with nothing else in it.
    pub fn of(r#type: LiveMessageType) -> Self {
        Self { r#type: r#type.into(), job: None, job_guid: None, jobs: None, code: None, message: None }
    }

    /// A message with a job.
    pub fn of_job(r#type: LiveMessageType, job: JobView) -> Self {
        Self { job: Some(Box::new(job)), ..Self::of(r#type) }
    }

    /// An error.
    pub fn error(code: LiveErrorCode, message: impl Into<String>) -> Self {
        Self { code: Some(code.into()), message: Some(message.into()), ..Self::of(LiveMessageType::Error) }
    }

    /// The message as sent.
    ///
    /// # Panics
    /// Never: a message is JSON.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a message is JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::examples;

    #[test]
    fn messages_have_the_documented_form() {
        let ended = LiveMessage::of_job(LiveMessageType::Ended, examples::job());
        let value: serde_json::Value = serde_json::from_str(&ended.text()).unwrap();
        assert_eq!((&value["type"], &value["job"]["status"]), (&"ended".into(), &"completed".into()));
        assert_eq!(value.as_object().unwrap().len(), 2);
        assert_eq!(serde_json::from_str::<LiveMessage>(&ended.text()).unwrap(), ended);
        assert_eq!(LiveMessage::of(LiveMessageType::Pong).text(), r#"{"type":"pong"}"#);
    }

    #[test]
    fn a_request_denies_what_it_does_not_know() {
        let read = |text: &str| serde_json::from_str::<LiveRequest>(text);
        assert_eq!(read(r#"{"action":"subscribe","jobs":"mine"}"#).unwrap().jobs, Some(LiveJobs::Mine));
        assert!(read(r#"{"action":"subscribe","job":"x"}"#).is_err());
        assert!(read(r#"{"action":"dance"}"#).is_err());
    }

    #[test]
    fn a_ticket_is_never_logged() {
        let ticket =
            LiveTicketView { ticket: "secret".into(), url: "wss://x".into(), expires_at: Timestamp::UNIX_EPOCH };
        assert!(!format!("{ticket:?}").contains("secret"));
    }
}
