use std::num::ParseIntError;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    MessageSystemAttributeNameForSends, MessageSystemAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use rowmill_core::model::lanes::group_of;
use rowmill_core::model::messages::{ChunkMessage, Grouped};
use rowmill_core::ports::{PortError, Queue};
use serde::Serialize;
use uuid::Uuid;

use super::batches::{batches, group};
use super::errors::port_error;
use crate::observe::trace;
use crate::sdk::denied::{denied, is_denied};
use crate::sdk::retry::Backoff;

const DOING: &str = "sending messages";

/// The longest time in seconds for which SQS holds a message back.
const DELAY_MAX_SECONDS: i32 = 900;

/// The number of batches of one call that are sent at the same time.
const CONCURRENT_BATCHES: usize = 8;

/// A queue in SQS. Messages are JSON.
#[derive(Debug)]
pub struct SqsQueue<M> {
    client: Client,
    url: String,
    groups: fn(&M) -> Groups,
}

/// Groups of SQS for a message.
struct Groups {
    group: String,
    /// Under which name a repeated message is dropped. Only the messages of a FIFO queue have one.
    deduplication: Option<String>,
}

impl<M: Grouped> SqsQueue<M> {
    /// The standard queue at this URL. Messages are grouped by owner, for the fair queues of SQS.
    pub const fn new(client: Client, url: String) -> Self {
        Self { client, url, groups: |message| Groups { group: group(message.owner()), deduplication: None } }
    }
}

impl SqsQueue<ChunkMessage> {
    /// The FIFO queue at this URL. The message groups are the lanes of the job types.
    pub const fn of_lanes(client: Client, url: String) -> Self {
        Self { client, url, groups: on_lane }
    }
}

/// A lane is a message group. Each sending has a name of its own, which only its own retries share: a chunk that is
/// sent again on purpose must not be dropped.
fn on_lane(message: &ChunkMessage) -> Groups {
    let job_type = message.job_type.as_deref().unwrap_or_default();
    let group = group_of(job_type, message.lane.unwrap_or_default());
    Groups { group, deduplication: Some(Uuid::new_v4().simple().to_string()) }
}

impl<M> SqsQueue<M> {
    /// Sends one batch, and retries the entries that SQS refuses temporarily.
    async fn send_batch(&self, mut entries: Vec<SendMessageBatchRequestEntry>) -> Result<(), PortError> {
        let mut backoff = Backoff::after_conflict();
        loop {
            let request = self.client.send_message_batch().queue_url(&self.url).set_entries(Some(entries.clone()));
            let output = request.send().await.map_err(|error| port_error(DOING, error))?;
            let Some(failed) = output.failed.first() else { return Ok(()) };
            let why = format!("{}: {}", failed.code, failed.message().unwrap_or("no reason given"));
            if is_denied(Some(&failed.code)) {
                return Err(denied(DOING, Some(&why.clone()), why));
            }
            if output.failed.iter().any(|failed| failed.sender_fault) {
                return Err(PortError::invalid(DOING, why));
            }
            entries.retain(|entry| output.failed.iter().any(|failed| failed.id == entry.id));
            if !backoff.wait().await {
                return Err(PortError::unavailable(DOING, why));
            }
        }
    }
}

fn entry(
    place: usize,
    body: &str,
    groups: Groups,
    about: Uuid,
    delay: Duration,
) -> Result<SendMessageBatchRequestEntry, PortError> {
    let entry = SendMessageBatchRequestEntry::builder().id(place.to_string()).message_body(body);
    let mut entry = entry.message_group_id(groups.group).set_message_deduplication_id(groups.deduplication);
    if !delay.is_zero() {
        let seconds = i32::try_from(delay.as_millis().div_ceil(1000)).unwrap_or(DELAY_MAX_SECONDS);
        entry = entry.delay_seconds(seconds.min(DELAY_MAX_SECONDS));
    }
    if let Some(trace) = trace::of_job(&about.to_string()) {
        let value = MessageSystemAttributeValue::builder().data_type("String").string_value(trace.to_xray()).build();
        let value = value.map_err(|error| PortError::invalid(DOING, error))?;
        entry = entry.message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, value);
    }
    entry.build().map_err(|error| PortError::invalid(DOING, error))
}

#[async_trait]
impl<M: Grouped + Serialize + Send + Sync> Queue<M> for SqsQueue<M> {
    async fn send_later(&self, messages: &[M], delay: Duration) -> Result<(), PortError> {
        let bodies: Result<Vec<String>, _> = messages.iter().map(serde_json::to_string).collect();
        let bodies = bodies.map_err(|error| PortError::invalid(DOING, error))?;
        let mut requests = Vec::new();
        for batch in batches(&bodies) {
            let entries = batch.into_iter().map(|place| {
                let message = &messages[place];
                entry(place, &bodies[place], (self.groups)(message), message.about(), delay)
            });
            requests.push(entries.collect::<Result<Vec<_>, _>>()?);
        }
        let sent = stream::iter(requests).map(|entries| self.send_batch(entries));
        sent.buffer_unordered(CONCURRENT_BATCHES).try_collect::<()>().await
    }

    async fn backlog(&self) -> Result<u64, PortError> {
        const DOING: &str = "counting the messages that wait";
        let waiting = QueueAttributeName::ApproximateNumberOfMessages;
        let request = self.client.get_queue_attributes().queue_url(&self.url).attribute_names(waiting.clone());
        let output = request.send().await.map_err(|error| port_error(DOING, error))?;
        let count = output.attributes().and_then(|attributes| attributes.get(&waiting));
        let count = count.ok_or_else(|| PortError::invalid(DOING, "the answer has no number of messages"))?;
        count.parse().map_err(|error: ParseIntError| PortError::invalid(DOING, error))
    }
}
